#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a Python file of test cases exits with status 77 if a case is skipped, so that ctest shows the test as skipped and not as passed."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FILE = """
import sys
import unittest
sys.dont_write_bytecode = True
sys.path.insert(0, {here!r})
import cases

class Cases(unittest.TestCase):
    def test_empty_case_passes(self):
        pass
    def test_generated_case_is_skipped_if_the_template_parameter_skips_is_true(self):
        if {skips}:
            self.skipTest("not installed: nothing")
    def test_generated_case_fails_if_the_template_parameter_fails_is_true(self):
        self.assertFalse({fails})

cases.main(sys.argv)
"""
USES_CASES = re.compile(r"^import cases$", re.MULTILINE)
ADDED = re.compile(r"add_test\(NAME (\S+)\s[^)]*?/(\w+_test\.py)")


class SkippedCases(unittest.TestCase):
    def status(self, skips, fails):
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-skip-"))) / "file.py"
        file.write_text(FILE.format(here=str(HERE), skips=skips, fails=fails))
        done = subprocess.run([sys.executable, "-B", file], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout

    def test_status_is_77_if_a_case_is_skipped(self):
        self.assertEqual(self.status(False, False), (0, ""))
        status, said = self.status(True, False)
        self.assertEqual(status, 77)
        self.assertRegex(said, r"^1 of 3 cases were skipped:\ntest_generated_case_is_skipped_if_the_template_parameter_skips_is_true .*: not installed: nothing\n$")

    def test_cases_that_only_a_full_run_executes_do_not_count_as_skipped(self):
        """In another run, a file is shown as skipped only if none of its cases has run."""
        for reason, skipped in (("cases.ONLY_IN_FULL", False), ("''", True)):
            file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-skip-"))) / "file.py"
            for names, expected in (("ab", 77 if skipped else 0), ("b", 77)):
                text = FILE.format(here=str(HERE), skips="False", fails="False").split("    def test_empty_case_passes")[0]
                text += "".join(f"    def test_{name}(self):\n        {'pass' if name == 'a' else f'self.skipTest({reason})'}\n" for name in names)
                file.write_text(text + "cases.main(sys.argv)\n")
                done = subprocess.run([sys.executable, "-B", file], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
                self.assertEqual(done.returncode, expected, (reason, names))

    def test_failure_takes_precedence_over_a_skip(self):
        self.assertEqual(self.status(True, True)[0], 1)

    def test_skip_return_code_77_is_set_for_each_ctest_that_may_skip_cases(self):
        """Each test whose file uses the status has it as its SKIP_RETURN_CODE, and each file that skips cases uses the status."""
        listing = (HERE.parent / "CMakeLists.txt").read_text()
        found = re.findall(r"set_tests_properties\(([^)]*?)\s+PROPERTIES SKIP_RETURN_CODE 77\)", listing)
        marked = " ".join(found).split()
        using = set()
        for name, file in ADDED.findall(listing):
            if file == pathlib.Path(__file__).name:
                continue
            text = (HERE / file).read_text()
            self.assertEqual(name in marked, bool(USES_CASES.search(text)), file)
            self.assertTrue(USES_CASES.search(text) or not re.search("skipTest|SkipTest|Attached", text), file)
            using.add(name)
        self.assertLessEqual(set(marked), using)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
