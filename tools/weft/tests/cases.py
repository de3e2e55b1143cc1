# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the test cases of a file for ctest, which shows a test with skipped cases as skipped."""
import sys
import unittest

SKIPPED = 77        # SKIP_RETURN_CODE of the test in CMakeLists.txt


def main(argv):
    """Runs the cases as unittest.main() does. The exit status is SKIPPED if a case was skipped and none has failed; the reasons are printed."""
    result = unittest.main(argv=argv, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.skipped:
        print(f"{len(result.skipped)} of {result.testsRun} cases were skipped:")
        for case, reason in result.skipped:
            print(f"{case}: {reason}")
        sys.exit(SKIPPED)
    sys.exit(0)
