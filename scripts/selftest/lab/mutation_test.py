# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the list of mutants matches the tree: each changes a file and refers to an existing test. Also tests that the seed selects among them."""
import dataclasses
import re
import types
import unittest

from lab import cache, mutation
from lab.errors import LabError
from lab.results import FAILED, Result

PLAIN, DEBUG = (types.SimpleNamespace(checked=checked, native=False) for checked in (False, True))


class Mutation(unittest.TestCase):
    mutants = mutation.load()

    def test_every_mutant_changes_a_file_of_the_tree(self):
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                self.assertNotEqual(mutant.text(cache.TREE), (cache.TREE / mutant.file).read_text())

    def test_every_mutant_names_an_existing_test_of_the_rule_that_it_breaks(self):
        cases = set(mutation.places())
        cases |= {name for room in ("core", "tools") for path in cache.TREE.glob(f"{room}/**/*_test.cpp") for name in re.findall(r"^TEST(?:_F)?\(\w+, (\w+)\)", path.read_text(), re.M)}
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                self.assertIn(mutant.test, cases)
                if mutant.rule != mutation.REPAIR:
                    self.assertIn(mutant.rule.lower().replace("-", "_"), mutant.test)

    def test_every_midlayer_rule_in_rules_rst_has_a_mutant(self):
        rules = set(re.findall(r"^((?:NOTIFY|LOCK|EVENT|MGMT)-\d\d)$", (cache.TREE / "Documentation/rules.rst").read_text(), re.M))
        self.assertGreater(len(rules), 30)
        self.assertEqual(rules - {mutant.rule for mutant in self.mutants}, set())

    def test_hang_or_crash_is_attributed_to_the_test_case_that_was_running(self):
        mutant = next(mutant for mutant in self.mutants if mutant.test == "notify_03_armed_cq_raises_an_event_for_the_next_completion")
        suite, before = mutation.places()[mutant.test][0]
        said = [Result("kunit-um", f"{mutant.module}.{suite}.case {before + 1 + n}", FAILED) for n in range(3)]
        self.assertTrue(mutation.ended_in(mutant, said))
        self.assertFalse(mutation.ended_in(mutant, said[1:]))
        self.assertFalse(mutation.ended_in(mutant, [Result("kunit-um", f"{mutant.module}.{suite}.case {before}", FAILED), *said]))
        self.assertFalse(mutation.ended_in(mutant, []))

    def test_hang_in_any_suite_that_contains_the_test_of_the_mutant_is_attributed_to_that_test(self):
        mutant = next(mutant for mutant in self.mutants if mutant.test == "lock_01_requests_can_be_posted_and_cqs_polled_and_armed_in_a_hard_interrupt")
        places = mutation.places()[mutant.test]
        self.assertGreater(len({index for _, index in places}), 1, "names are unique now: choose another")
        for suite, before in places:
            self.assertTrue(mutation.ended_in(mutant, [Result("kunit-um", f"{mutant.module}.{suite}.case {before + 1}", FAILED)]))

    def test_mutant_with_outdated_source_text_is_refused(self):
        lost = dataclasses.replace(self.mutants[0], find="nothing of the kind")
        with self.assertRaisesRegex(LabError, "occurs 0 times"):
            lost.text(cache.TREE)

    def test_seed_determines_which_mutants_are_chosen(self):
        chosen = mutation.choose(self.mutants, PLAIN, False, None, 1)
        self.assertEqual(chosen, mutation.choose(self.mutants, PLAIN, False, None, 1))
        self.assertNotEqual(chosen, mutation.choose(self.mutants, PLAIN, False, None, 2))
        self.assertFalse(any(mutant.hangs or mutant.kernel.startswith("checked") for mutant in chosen))
        everything = mutation.choose(self.mutants, PLAIN, True, None, 1) + mutation.choose(self.mutants, DEBUG, True, None, 1)
        self.assertEqual({mutant.name for mutant in everything}, {mutant.name for mutant in self.mutants})
        self.assertEqual({mutant.rule for mutant in mutation.choose(self.mutants, PLAIN, True, re.compile("^LOCK-10"), 1)}, {"LOCK-10"})


if __name__ == "__main__":
    unittest.main()
