# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Lists in documents that differ from the sources are reported: packages of other hosts."""
import pathlib
import shutil
import tempfile
import unittest

from lab import cache, documents

PACKAGES = ("Documentation/support.rst", "scripts/packages/programs.list", "scripts/packages/lab.list")


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for path in PACKAGES:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cache.TREE / path, self.tree / path)

    def replace(self, path, old, new):
        text = (self.tree / path).read_text()
        self.assertIn(old, text)
        (self.tree / path).write_text(text.replace(old, new))

    def test_lists_of_the_tree_are_complete(self):
        self.assertEqual(documents.check_packages(self.tree), [])

    def test_package_that_a_list_lacks_is_reported(self):
        self.replace("Documentation/support.rst", "libibumad-dev", "")
        self.replace("Documentation/support.rst", "json-devel", "")
        self.assertEqual(documents.check_packages(self.tree), ["support.rst does not list libibumad-dev for Ubuntu 24.04, which scripts/packages requires",
                                                               "support.rst does not list json-devel for Fedora, which scripts/packages requires"])

    def test_new_package_is_missed_in_both_lists(self):
        self.replace("scripts/packages/lab.list", "python3\n", "python3\nzstd\n")
        self.assertEqual(len(documents.check_packages(self.tree)), 2)


if __name__ == "__main__":
    unittest.main()
