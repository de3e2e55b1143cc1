#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that programs, manual pages, documents and CHANGELOG.md have the same version as debian/changelog.

    version_test.py WEFT WEFTD
"""
import pathlib
import re
import runpy
import subprocess
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[3]
ENTRY = re.compile(r"^weft \(([0-9.]+)\) .*?^ -- .*?  \w{3}, (\d\d) (\w{3}) (\d{4}) ", re.MULTILINE | re.DOTALL)
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def said_by(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=60).stdout


class Version(unittest.TestCase):
    def setUp(self):
        self.version, day, month, year = ENTRY.search((TREE / "debian/changelog").read_text()).groups()
        self.date = f"{year}-{MONTHS.index(month) + 1:02}-{day}"
        self.script = TREE / "scripts/make/version"

    def test_version_script_prints_version_and_date_of_the_first_debian_changelog_entry(self):
        self.assertEqual((said_by(self.script), said_by(self.script, "--date")), (f"{self.version}\n", f"{self.date}\n"))

    def test_weft_and_weftd_print_the_version_of_weft(self):
        for program in WEFT, WEFTD:
            self.assertEqual(said_by(program, "--version"), f"{pathlib.Path(program).name} {self.version}\n")

    def test_changelog_begins_with_the_version_of_weft(self):
        self.assertEqual(re.search(r"^## (.*)$", (TREE / "CHANGELOG.md").read_text(), re.MULTILINE)[1], f"{self.version} ({self.date})")

    def test_manual_pages_state_the_version_of_weft(self):
        for page in sorted((TREE / "Documentation/man").iterdir()):
            with self.subTest(page.name):
                headings = re.findall(r"^\.TH .*$", said_by(self.script, "--manual", page), re.MULTILINE)
                self.assertEqual(len(headings), 1)
                self.assertIn(f' "{self.date}" "weft {self.version}" ', headings[0])
                self.assertNotRegex(page.read_text(), r"(?m)^\.TH .*[0-9]\.[0-9]")

    def test_documents_state_the_version_of_weft(self):
        settings = runpy.run_path(str(TREE / "Documentation/conf.py"))
        self.assertEqual((settings["version"], settings["release"]), (self.version, self.version))


if __name__ == "__main__":
    WEFTD, WEFT = sys.argv.pop(), sys.argv.pop()
    unittest.main()
