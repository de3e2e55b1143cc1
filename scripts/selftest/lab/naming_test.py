# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""clang-tidy reports names that violate the style of their half, even in sources that cannot be compiled together."""
import pathlib
import shutil
import tempfile
import unittest

from lab import cache, naming
from lab.errors import LabError


class Naming(unittest.TestCase):
    def complaints(self, **sources):
        """sources: text by name, `tools_a` for tools/a.cpp."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for name in (".clang-tidy", "tools/.clang-tidy"):
                (tree / name).parent.mkdir(exist_ok=True)
                shutil.copy(cache.TREE / name, tree / name)
            for name, text in sources.items():
                path = tree / f"{name.replace('_', '/')}.cpp"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            return naming.complaints(tree)

    def test_names_in_style_pass(self):
        self.assertEqual(self.complaints(tools_a="constexpr int kMost = 1;\nenum class Kind { one_of_them };\n",
                                         core_a="constexpr int most = 1;\nenum ib_kind { IB_ONE };\n"), [])

    def test_kernel_and_host_constants_in_each_others_style_are_reported(self):
        self.assertEqual(self.complaints(tools_a="constexpr int most = 1;\n", core_a="\nconstexpr int kMost = 1;\n"),
                         ["core/a.cpp:2: invalid case style for global constant 'kMost'", "tools/a.cpp:1: invalid case style for global constant 'most'"])

    def test_misnamed_functions_types_and_members_are_reported(self):
        text = "class wrong {\n\tint member = 0;\n};\nvoid alsoWrong(wrong) {}\n"
        said = self.complaints(tools_a=text)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in said], ["'wrong'", "'member'", "'alsoWrong'"])

    def test_sources_with_equal_definitions_are_all_checked(self):
        text = "namespace\n{\nstruct Same {\n\tint %s = 0;\n};\n} // namespace\nint main() { return Same{}.%s; }\n"
        said = self.complaints(tools_a=text % ("oneWrong", "oneWrong"), tools_b=text % ("twoWrong", "twoWrong"))
        self.assertEqual([line.rsplit(" ", 1)[1] for line in said], ["'oneWrong'", "'twoWrong'"])

    def test_source_that_conflicts_with_others_is_checked_separately(self):
        first = "namespace first { struct Value {}; }\nusing namespace first;\n"
        second = "namespace second { struct Value {}; }\nusing namespace second;\nvoid use() { auto each = [](Value) { int WRONG = 0; (void)WRONG; }; (void)each; }\n"
        self.assertEqual(self.complaints(tools_a=first, tools_b=second), ["tools/b.cpp:3: invalid case style for variable 'WRONG'"])

    def test_source_that_does_not_compile_is_an_error(self):
        with self.assertRaisesRegex(LabError, "tools/a.cpp does not compile"):
            self.complaints(tools_a="int one = nothing;\n")
