# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the test cases of a file for ctest, which shows a test with skipped cases as skipped."""
import os
import sys
import unittest

SKIPPED = 77        # SKIP_RETURN_CODE of the test in CMakeLists.txt
FULL = bool(os.environ.get("WEFT_FULL"))        # of `scripts/test --full`
ONLY_IN_FULL = "only with WEFT_FULL"
# For cases that take too long for every run. They do not count as skipped, unless all cases of the file are.
in_full_run = unittest.skipUnless(FULL, ONLY_IN_FULL)


def main(argv):
    """Runs the cases as unittest.main() does. The exit status is SKIPPED if a case was skipped and none has failed; the reasons are printed."""
    result = unittest.main(argv=argv, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if len(result.skipped) == result.testsRun or any(reason != ONLY_IN_FULL for _, reason in result.skipped):
        print(f"{len(result.skipped)} of {result.testsRun} cases were skipped:")
        for case, reason in result.skipped:
            print(f"{case}: {reason}")
        sys.exit(SKIPPED)
    sys.exit(0)
