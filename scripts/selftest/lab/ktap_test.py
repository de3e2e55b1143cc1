# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the KTAP parser rejects incomplete and inconsistent output."""
import unittest

from lab import ktap
from lab.results import FAILED, PASSED, SKIPPED


def outcomes(text):
    return [(case.name, case.outcome) for suite in ktap.parse(text) for case in suite.outcomes()]


class Ktap(unittest.TestCase):
    def test_kunit_output_with_kernel_time_stamps_is_parsed(self):
        text = ("[    1.0] noise\n[    1.2]     # Subtest: registry\n[    1.3]     1..2\n[    1.4]     ok 1 first\n"
                "[    1.5]     ok 2 - second\n[    1.6] # registry: pass:2\n[    1.7] ok 1 registry\n")
        self.assertEqual(outcomes(text), [("first", PASSED), ("second", PASSED)])

    def test_result_of_a_failed_case_includes_its_diagnostics(self):
        text = "    # Subtest: s\n    1..1\n    # a: EXPECTATION FAILED at x.c:3\n    not ok 1 a\nnot ok 1 s\n"
        case = ktap.parse(text)[0].outcomes()[0]
        self.assertEqual(case.outcome, FAILED)
        self.assertIn("x.c:3", case.detail)

    def test_case_that_did_not_run_is_a_failure(self):
        text = "    # Subtest: s\n    1..3\n    ok 1 a\n"
        self.assertEqual([outcome for _, outcome in outcomes(text)], [PASSED, FAILED, FAILED])

    def test_suite_without_a_result_line_is_a_failure(self):
        self.assertIn(FAILED, dict((o, n) for n, o in outcomes("    # Subtest: s\n    1..1\n    ok 1 a\n")))

    def test_suite_without_plan_or_cases_is_a_failure(self):
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    ok 1 a\nok 1 s\n")], [PASSED, FAILED])
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    1..0\nok 1 s\n")], [FAILED])

    def test_suite_reported_as_failed_is_a_failure_even_if_all_its_cases_passed(self):
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    1..1\n    ok 1 a\nnot ok 1 s\n")], [PASSED, FAILED])

    def test_suite_reported_as_passed_is_a_failure_if_one_of_its_cases_failed(self):
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    1..1\n    not ok 1 a\nok 1 s\n")], [FAILED, FAILED])

    def test_wrong_case_number_is_a_failure(self):
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    1..1\n    ok 2 a\nok 1 s\n")], [PASSED, FAILED])

    def test_suite_with_more_cases_than_planned_is_a_failure(self):
        self.assertEqual([o for _, o in outcomes("    # Subtest: s\n    1..1\n    ok 1 a\n    ok 2 b\nok 1 s\n")], [PASSED, PASSED, FAILED])

    def test_skipped_case_is_reported_with_its_reason(self):
        self.assertEqual(outcomes("    # Subtest: s\n    1..1\n    ok 1 a # SKIP no device\nok 1 s\n"), [("a", SKIPPED)])

    def test_parameters_of_a_case_are_not_counted_as_cases(self):
        text = "    # Subtest: s\n    1..1\n        # Subtest: a\n        ok 1 - one\n        ok 2 - two\n    ok 1 a\nok 1 s\n"
        self.assertEqual(outcomes(text), [("a", PASSED)])
