# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that includes that the allow-list does not permit are reported, and that the tree has none."""
import pathlib
import tempfile
import unittest

from lab import cache, layering

ROWS = {
    "include/kern": {"linux"},
    "include/rdma": {"include/kern"},
    "include/rdma/ib_mad.h": {"include/rdma"},
    "core/verbs": {"include/rdma", "include/kern"},
    "core/mad": {"include/rdma", "include/rdma/ib_mad.h"},
    "core/mad/tests": {"core/verbs/tests"},
    "tools/base": {"libraries"},
    "tools/cards": {"tools/base"},
    "tools/cards/mlx4": {"tools/cards", "tools/bus/device.hpp"},
    "tools/bus": set(),
}
FILES = ("include/kern/types.h", "include/rdma/verbs.h", "include/rdma/ib_mad.h", "core/verbs/qp.hpp", "core/verbs/tests/fixture.hpp", "tools/base/loop.hpp",
         "tools/cards/card.hpp", "tools/cards/mlx4/core.hpp", "tools/bus/device.hpp", "tools/bus/server.hpp")


def complaints_of(check, rows, files, name, text):
    """Returns the complaints of a check about a tree of empty files and one with a text."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (*files, name):
            path = pathlib.Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if file == name else "")
        return check(pathlib.Path(folder), rows)


class Layering(unittest.TestCase):
    def complaints(self, name, text):
        return complaints_of(layering.complaints, ROWS, FILES, name, text)

    def assert_refused(self, name, text, wanted):
        found = self.complaints(name, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{name} includes", found[0])
        self.assertIn(f"may not include {wanted}", found[0])

    def assert_permitted(self, name, text):
        self.assertEqual(self.complaints(name, text), [])

    def test_source_tree_has_only_permitted_includes(self):
        self.assertEqual(layering.complaints(cache.TREE), [])

    def test_all_directories_in_the_allow_list_exist(self):
        rows = layering.allowed(cache.TREE)
        named = set(rows) | set().union(*rows.values()) - {"linux", "libraries"}
        self.assertEqual([name for name in sorted(named) if not (cache.TREE / name.removesuffix("/tests")).exists()], [])

    def test_missing_allow_list_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "Documentation").mkdir()
            (pathlib.Path(folder) / "Documentation/architecture.rst").write_text("Architecture\n")
            self.assertEqual(len(layering.complaints(pathlib.Path(folder))), 1)

    def test_file_not_covered_by_the_allow_list_is_reported(self):
        self.assertEqual(len(self.complaints("tools/new/a.cpp", "")), 1)

    def test_include_of_a_kernel_header_needs_permission(self):
        self.assert_refused("core/verbs/qp.cpp", "#include <linux/slab.h>\n", "linux")
        self.assert_refused("core/mad/tests/agent_test.cpp", "#ifdef X\n# include <kunit/test.h>\n#endif\n", "linux")
        self.assert_permitted("include/kern/export.h", "#include <linux/export.h>\n")
        self.assert_permitted("core/verbs/tests/guest/program.c", "#include <linux/if_link.h>\n")

    def test_include_of_a_library_header_needs_permission(self):
        self.assert_refused("tools/cards/mlx4/core.cpp", "#include <fmt/format.h>\n", "libraries")
        self.assert_permitted("tools/base/text.cpp", "#include <fmt/format.h>\n#include <vector>\n")

    def test_permission_to_include_a_directory_does_not_cover_its_subdirectories(self):
        self.assert_refused("tools/cards/card.cpp", '#include "cards/mlx4/core.hpp"\n', "tools/cards/mlx4")
        self.assert_permitted("tools/cards/mlx4/core.cpp", '#include "cards/card.hpp"\n')

    def test_permission_to_include_a_directory_does_not_cover_separately_listed_headers(self):
        self.assert_refused("core/verbs/qp.cpp", "#include <rdma/ib_mad.h>\n", "include/rdma/ib_mad.h")
        self.assert_permitted("core/mad/agent.cpp", "#include <rdma/ib_mad.h>\n#include <rdma/verbs.h>\n")

    def test_permission_to_include_a_single_file_does_not_cover_its_directory(self):
        self.assert_permitted("tools/cards/mlx4/core.cpp", '#include "bus/device.hpp"\n')
        self.assert_refused("tools/cards/mlx4/core.cpp", '#include "bus/server.hpp"\n', "tools/bus")

    def test_relative_includes_are_resolved(self):
        self.assert_refused("core/mad/agent.cpp", '#include "../verbs/qp.hpp"\n', "core/verbs")

    def test_tests_have_the_permissions_of_the_tested_directory(self):
        self.assert_permitted("core/mad/tests/agent_test.cpp", '#include <rdma/verbs.h>\n#include "../../verbs/tests/fixture.hpp"\n')
        self.assert_refused("core/verbs/tests/qp_test.cpp", "#include <rdma/ib_mad.h>\n", "include/rdma/ib_mad.h")
        self.assert_refused("core/mad/agent.cpp", '#include "../verbs/tests/fixture.hpp"\n', "core/verbs/tests")


PYTHON_ROWS = {"scripts": {"scripts/lab"}, "scripts/lab": set(), "tools/session": {"scripts/lab"}, "tools/python": {"pytest"}}
PYTHON_FILES = ("scripts/lab/guest.py", "scripts/lab/cache.py", "tools/session/labs.py", "tools/session/hunt/trial.py", "tools/python/weft/plugin.py")


class PythonLayering(unittest.TestCase):
    def complaints(self, name, text):
        return complaints_of(layering.python_complaints, PYTHON_ROWS, PYTHON_FILES, name, text)

    def test_source_tree_has_only_permitted_imports(self):
        self.assertEqual(layering.python_complaints(cache.TREE), [])
        rows = layering.allowed(cache.TREE, "layering-python")
        directories = set(rows) | {name for permitted in rows.values() for name in permitted if "/" in name}
        self.assertEqual([name for name in sorted(directories) if not (cache.TREE / name).is_dir()], [])

    def test_permitted_imports_are_not_reported(self):
        self.assertEqual(self.complaints("tools/session/labs.py", "import json, os.path\nfrom lab import guest\nimport hunt.trial\n"), [])
        self.assertEqual(self.complaints("tools/python/weft/plugin.py", "import pytest\nfrom weft import plugin\nfrom . import plugin\n"), [])

    def test_imports_outside_the_allow_list_are_reported(self):
        for name, text, wanted in (("scripts/lab/guest.py", "def boot():\n    import labs\n", "may not import tools/session"),
                                   ("tools/python/weft/plugin.py", "from lab import guest\n", "may not import scripts/lab"),
                                   ("tools/session/labs.py", "import pytest\n", "may not import pytest"),
                                   ("hw/new.py", "", "is in no directory")):
            found = self.complaints(name, text)
            self.assertEqual(len(found), 1, found)
            self.assertIn(wanted, found[0])


class Package(unittest.TestCase):
    """The part of the test harness that the Debian package contains needs no other part."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for name, text in (("debian/rules", "parts := $(addprefix scripts/lab/,$(addsuffix .py,__init__ guest qemu))\n"), ("scripts/lab/__init__.py", ""),
                           ("scripts/lab/guest.py", "from lab import qemu\n"), ("scripts/lab/qemu.py", "import os\n"), ("scripts/lab/kunit.py", ""),
                           ("tools/weft/session/labs.py", "from lab import TREE\nfrom lab.guest import Guest\n")):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text)

    def test_debian_package_contains_all_imported_modules(self):
        self.assertEqual(layering.package_complaints(cache.TREE), [])
        self.assertEqual(layering.package_complaints(self.tree), [])

    def test_imports_of_modules_outside_the_package_are_reported(self):
        (self.tree / "scripts/lab/qemu.py").write_text("import lab.kunit\n")
        (self.tree / "tools/weft/session/weft-session").write_text("from lab.kunit import suites\n")
        self.assertEqual(layering.package_complaints(self.tree),
                         ["scripts/lab/qemu.py imports scripts/lab/kunit.py, which debian/rules does not install",
                          "tools/weft/session/weft-session imports scripts/lab/kunit.py, which debian/rules does not install"])

    def test_installed_python_file_that_no_program_imports_is_reported(self):
        (self.tree / "scripts/lab/guest.py").write_text("import os\n")
        self.assertEqual(layering.package_complaints(self.tree), ["debian/rules installs scripts/lab/qemu.py, which no installed file uses"])


if __name__ == "__main__":
    unittest.main()
