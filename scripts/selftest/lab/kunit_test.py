# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a test run recognises whether --only can match a KUnit suite. Only then does the run build kernels for KUnit, which takes minutes."""
import re
import unittest

from lab import kunit


class CouldChoose(unittest.TestCase):
    def could(self, pattern):
        return kunit.could_choose("um", re.compile(pattern))

    def test_pattern_that_matches_a_kunit_test_selects_the_kunit_run(self):
        for pattern in (r"^kunit-um\.", r"^kunit-um\.weft_ipoib_test", "weft_mad_test.kernel-log", "ipoib_09_truncated_packet", r"^kunit-um\.unload",
                        r"mad_agent_card\.mgmt_03_each_request_completes_once_and_gets_its_response",
                        r"weft_amso1100_test\.amso1100_channel\.status_of_a_card_reply_is_returned_as_errno"):
            self.assertTrue(self.could(pattern), pattern)
        self.assertTrue(kunit.could_choose("um", None))

    def test_pattern_that_matches_no_kunit_test_does_not_select_the_kunit_run(self):
        for pattern in (r"tutorials\.open_mpi_runs_on_four_guests", r"^kunit-um-debug\.", r"guest-stock\.probe", r"kunit-um\.weft_nothing_test"):
            self.assertFalse(self.could(pattern), pattern)
