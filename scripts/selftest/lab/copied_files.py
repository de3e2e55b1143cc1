# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a copy of some files of the tree, into which a test puts a defect that a check must report."""
import pathlib
import shutil
import tempfile
import unittest

from lab import cache


class CopiedFiles(unittest.TestCase):
    """The copies are in self.tree, at the paths that they have in the tree."""

    def copy(self, paths):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for path in paths:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cache.TREE / path, self.tree / path)

    def replace(self, path, old, new):
        text = (self.tree / path).read_text()
        self.assertIn(old, text)
        (self.tree / path).write_text(text.replace(old, new))
