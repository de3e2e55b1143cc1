# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that clang-tidy reports names that violate the naming style: that of user-space programs in tools/, and that of kernel modules elsewhere. It
must do so even in sources that cannot be compiled together."""
import os
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

from lab import cache, naming
from lab.errors import LabError


class Naming(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name, "tree")
        for name in (".clang-tidy", "tools/.clang-tidy"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cache.TREE / name, self.tree / name)
        environment = unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder.name})
        environment.start()
        self.addCleanup(environment.stop)

    def complaints(self, **sources):
        """sources: text by name, `tools_a` for tools/a.cpp."""
        for name, text in sources.items():
            path = self.tree / f"{name.replace('_', '/')}.cpp"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return naming.complaints(self.tree)

    def checked(self):
        """Checks the tree; returns the names of the sources that were checked."""
        seen = []
        tidy = naming._tidy
        with unittest.mock.patch.object(naming, "_tidy", lambda tree, number, members, flags: seen.extend(members) or tidy(tree, number, members, flags)):
            naming.complaints(self.tree)
        return sorted(path.name for path in seen)

    def test_names_in_the_coding_style_are_not_reported(self):
        self.assertEqual(self.complaints(tools_a="constexpr int kMost = 1;\nenum class Kind { one_of_them };\n",
                                         core_a="constexpr int most = 1;\nenum ib_kind { IB_ONE };\n"), [])

    def test_constants_in_kernel_style_are_reported_in_host_code_and_vice_versa(self):
        self.assertEqual(self.complaints(tools_a="constexpr int most = 1;\n", core_a="\nconstexpr int kMost = 1;\n"),
                         ["core/a.cpp:2: invalid case style for global constant 'kMost'", "tools/a.cpp:1: invalid case style for global constant 'most'"])

    def test_misnamed_functions_types_and_members_are_reported(self):
        text = "class wrong {\n\tint member = 0;\n};\nvoid alsoWrong(wrong) {}\n"
        said = self.complaints(tools_a=text)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in said], ["'wrong'", "'member'", "'alsoWrong'"])

    def test_sources_that_define_the_same_type_are_all_checked(self):
        text = "namespace\n{\nstruct Same {\n\tint %s = 0;\n};\n} // namespace\nint main() { return Same{}.%s; }\n"
        said = self.complaints(tools_a=text % ("oneWrong", "oneWrong"), tools_b=text % ("twoWrong", "twoWrong"))
        self.assertEqual([line.rsplit(" ", 1)[1] for line in said], ["'oneWrong'", "'twoWrong'"])

    def test_source_that_does_not_compile_together_with_others_is_checked_separately(self):
        first = "namespace first { struct Value {}; }\nusing namespace first;\n"
        second = "namespace second { struct Value {}; }\nusing namespace second;\nvoid use() { auto each = [](Value) { int WRONG = 0; (void)WRONG; }; (void)each; }\n"
        self.assertEqual(self.complaints(tools_a=first, tools_b=second), ["tools/b.cpp:3: invalid case style for variable 'WRONG'"])

    def test_source_that_does_not_compile_is_an_error(self):
        with self.assertRaisesRegex(LabError, "tools/a.cpp does not compile"):
            self.complaints(tools_a="int one = nothing;\n")

    def test_only_files_with_changed_code_are_checked_again(self):
        header = self.tree / "tools/h.hpp"
        header.write_text("#pragma once\nint one();\n")
        self.complaints(tools_a='#include "h.hpp"\nint two() { return one(); }\n', tools_b='#include "h.hpp"\nint three() { return one(); }\n')
        self.assertEqual(self.checked(), [])
        (self.tree / "tools/a.cpp").write_text('#include "h.hpp"\n// A comment.\nint two()\n{\n\treturn one(); /* and another */\n}\n')
        self.assertEqual(self.checked(), [])
        (self.tree / "tools/b.cpp").write_text('#include "h.hpp"\nint four() { return one(); }\n')
        self.assertEqual(self.checked(), ["b.cpp"])
        # A header is checked with one of the sources that include it.
        header.write_text("#pragma once\nint one();\nint wrongName();\n")
        self.assertEqual(naming.complaints(self.tree), ["tools/h.hpp:3: invalid case style for function 'wrongName'"])
        self.assertEqual(self.checked(), ["a.cpp"])
        (self.tree / "tools/.clang-tidy").write_text((self.tree / "tools/.clang-tidy").read_text() + "# another style\n")
        self.assertEqual(self.checked(), ["a.cpp", "b.cpp"])

    def test_wrong_name_is_reported_again_until_it_is_corrected(self):
        wrong = {"tools_a": "constexpr int most = 1;\n"}
        self.assertEqual(len(self.complaints(**wrong)), 1)
        self.assertEqual(len(self.complaints(**wrong)), 1)
        self.assertEqual(self.complaints(tools_a="constexpr int kMost = 1;\n"), [])
