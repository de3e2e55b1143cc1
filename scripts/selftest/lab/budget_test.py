# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the time report of a test run lists groups of tests that exceed their budget, and the ten slowest tests."""
import unittest

from lab.budget import PARTS, SLOWEST, Clock
from lab.results import PASSED, Result


class Budget(unittest.TestCase):
    def setUp(self):
        self.time = 0.0
        self.clock = Clock(lambda: self.time)

    def spend(self, part, seconds):
        with self.clock.part(part):
            self.time += seconds

    def test_time_budget_overrun_of_one_part_of_a_test_run_is_reported(self):
        self.spend("fuzz", PARTS["fuzz"] - 10)
        self.assertFalse(any("over" in line for line in self.clock.lines([])))
        self.spend("host", 1)
        self.spend("fuzz", 11)
        over = [line for line in self.clock.lines([]) if line.endswith("over")]
        self.assertEqual(len(over), 1)
        self.assertEqual(over[0].split(), ["fuzz", str(PARTS["fuzz"] + 1), str(PARTS["fuzz"]), "over"])

    def test_time_of_a_failed_part_of_a_test_run_is_counted(self):
        with self.assertRaises(ValueError), self.clock.part("build"):
            self.time += 7
            raise ValueError
        self.assertIn(["build", "7", str(PARTS["build"])], [line.split() for line in self.clock.lines([])])

    def test_ten_slowest_tests_are_listed_from_the_slowest_to_the_fastest(self):
        results = [Result("guest-plain", f"test{n}", PASSED, seconds=float(n)) for n in range(20)]
        named = [line.split() for line in self.clock.lines(results)[-SLOWEST:]]
        self.assertEqual(named[0], ["19.0", "guest-plain.test19"])
        self.assertEqual(named[-1], ["10.0", "guest-plain.test10"])

    def test_fast_tests_are_not_listed_as_slowest_tests(self):
        self.assertEqual(len(self.clock.lines([Result("host", "quick", PASSED, seconds=0.5)])), 1)
