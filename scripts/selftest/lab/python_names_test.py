# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that undefined and unused names in Python files are reported."""
import pathlib
import tempfile
import unittest

from lab import python_names


class PythonNames(unittest.TestCase):
    def complaints(self, name, text):
        tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-names-")))
        (tree / "scripts").mkdir()
        (tree / "scripts" / name).write_text(text)
        return python_names.complaints(tree)

    def test_undefined_and_unused_names_are_reported(self):
        for name, text in (("a.py", "print(nowhere)\n"), ("program", "#!/usr/bin/env python3\nprint(nowhere)\n"), ("a.py", "import nowhere\n"),
                           ("a.py", "print(nowhere\n")):
            with self.subTest(name=name, text=text):
                found = self.complaints(name, text)
                self.assertTrue(found and found[0].startswith(f"scripts/{name}:"), found)

    def test_names_in_shell_scripts_and_imports_with_noqa_f401_are_not_reported(self):
        self.assertEqual(self.complaints("a.py", "import os  # noqa: F401: for others\n"), [])
        self.assertEqual(self.complaints("program", "#!/bin/sh\nprint(nowhere)\n"), [])
