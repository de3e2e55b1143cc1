# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that formatting changes only the layout of sources, and that violations are reported."""
import pathlib
import tempfile
import unittest

from lab import cache, conventions, layout

WIDE = "a word and another one, and so on until the line is wider than all that a reader is asked to take in at once"


class Comments(unittest.TestCase):
    def test_long_comments_are_reflowed(self):
        for wide in (f"// {WIDE}\nint a;\n", f"\t/* {WIDE} */\n\tint a;\n", f"/*\n * {WIDE}\n * {WIDE}\n */\n", f"/**\n * f() - {WIDE}\n * @a: {WIDE}\n */\n"):
            filled = layout.fill_comments(wide)
            self.assertLessEqual(max(map(layout.width, filled.split("\n"))), layout.COLUMNS, filled)
            self.assertEqual(layout.bare(filled), layout.bare(wide))
            self.assertEqual(layout.fill_comments(filled), filled)

    def test_paragraphs_and_list_items_are_reflowed_separately(self):
        filled = layout.fill_comments(f"/*\n * short\n *\n * - {WIDE}\n * - second\n * @arg: third\n */")
        self.assertEqual([line for line in filled.split("\n") if line in (" * short", " *", " * - second", " * @arg: third")],
                         [" * short", " *", " * - second", " * @arg: third"])
        self.assertIn("\n *   ", filled, "an item hangs")

    def test_spdx_line_is_not_merged_with_a_comment(self):
        filled = layout.fill_comments(f"// {conventions.LICENCE}\n// {WIDE}\n")
        self.assertEqual(filled.split("\n")[0], f"// {conventions.LICENCE}")

    def test_comments_with_manual_layout_are_not_reflowed(self):
        for drawn in (f"// a    b    {WIDE}\n", f"/*\n * x = f({WIDE});\n */\n", f"//  │ {WIDE}\n", "// " + "x" * 120 + "\n", "// short\n// lines\n"):
            self.assertEqual(layout.fill_comments(drawn), drawn)


class Tree(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.tree / ".clang-format").write_bytes((cache.TREE / ".clang-format").read_bytes())

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {conventions.LICENCE}\n{text}")

    def test_format_violations_are_reported_and_fixed(self):
        known = self.tree / "build/known"
        self.write("core/good.cpp", "int f(int a)\n{\n\treturn a;\n}\n")
        self.assertEqual(layout.complaints(self.tree, known), [])
        self.write("core/code.cpp", "int f( int a ){return a;}\n")
        self.write("core/words.hpp", f"// {WIDE}\nint a;\n")
        for _ in range(2):
            self.assertEqual([complaint.split()[0] for complaint in layout.complaints(self.tree, known)], ["core/code.cpp", "core/words.hpp"])
        self.assertEqual(layout.format_tree(self.tree), ["core/code.cpp", "core/words.hpp"])
        self.assertEqual(layout.complaints(self.tree, known), [])
        self.assertEqual(layout.format_tree(self.tree), [])

    def test_source_tree_has_no_format_violations(self):
        self.assertEqual(layout.complaints(cache.TREE, cache.TREE / "build/layout"), [])

    def test_code_between_clang_format_off_and_on_is_not_reported(self):
        rows = "// clang-format off\nint a[] = {1,  2,\n           3};\n// clang-format on\n"
        self.write("core/rows.cpp", rows)
        self.assertEqual(layout.complaints(self.tree), [])
