# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests which directories contain a User-Mode Linux kernel that guests in virtual time can boot (lab.own_uml)."""
import os
import pathlib
import tempfile
import unittest
import unittest.mock

from lab import kernels, own_uml
from lab.errors import LabError

RELEASE = "6.1.7-mine"


class OwnUml(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-uml-")))
        self.tree = self.folder / "tree"
        self.enterContext(unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "cache")}))
        self.write("vmlinux", "a program")
        self.write("include/config/kernel.release", f"{RELEASE}\n")
        self.configure(())

    def write(self, name, text=""):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def configure(self, missing, *more):
        self.write(".config", "".join(f"CONFIG_{option}={value}\n" for option, value, _ in (*own_uml.NEEDED, *more) if option not in missing))

    def test_modules_in_a_kernel_build_tree_are_found(self):
        for name in ("drivers/a/one.ko", "drivers/two-b.ko"):
            self.write(name)
        for listed in ("kernel/drivers/a/one.ko\nkernel/drivers/two-b.ko\n", "drivers/a/one.o\ndrivers/two-b.o\n"):
            self.write("modules.order", listed)
            found = own_uml.look(self.tree)
            self.assertEqual((found.release, found.image, found.native, found.checked), (RELEASE, self.tree / "vmlinux", True, False))
            self.assertEqual(found.modules.name, RELEASE)
            self.assertTrue((found.modules / "kernel/drivers/a/one.ko").is_file() and (found.modules / "kernel/drivers/two-b.ko").is_file())

    def test_cache_key_changes_if_the_kernel_or_a_module_is_rebuilt(self):
        self.write("modules.order", "one.o\n")
        self.write("one.ko")
        first = own_uml.look(self.tree)
        self.assertEqual(own_uml.look(self.tree), first)
        os.utime(self.tree / "one.ko", (1, 1))
        self.assertNotEqual(own_uml.look(self.tree).identity, first.identity)
        os.utime(self.tree / "vmlinux", (1, 1))
        self.assertNotEqual(own_uml.look(self.tree).identity, first.identity)

    def test_modules_from_modules_install_are_used_without_a_copy(self):
        self.write(f"lib/modules/{RELEASE}/modules.dep")
        self.assertEqual(own_uml.look(self.tree).modules, self.tree / "lib/modules" / RELEASE)

    def test_uml_kernel_binary_may_be_named_linux(self):
        (self.tree / "vmlinux").rename(self.tree / "linux")
        self.assertEqual(own_uml.look(self.tree).image, self.tree / "linux")

    def test_kernel_with_kasan_is_a_debug_kernel(self):
        self.configure((), ("KASAN", "y", ""))
        self.assertTrue(own_uml.look(self.tree).checked)

    def test_kernel_config_without_a_required_option_is_reported(self):
        for option, _, _ in (*own_uml.NEEDED, *own_uml.FAILING_ALLOCATIONS):
            self.configure((option,), *own_uml.FAILING_ALLOCATIONS)
            with self.subTest(option), self.assertRaisesRegex(LabError, f"lacks CONFIG_{option}="):
                own_uml.look(self.tree, own_uml.FAILING_ALLOCATIONS)
        self.configure(("FAILSLAB",))
        self.assertTrue(own_uml.look(self.tree).native, "only a hunt needs failing allocations")

    def test_incomplete_kernel_directory_is_refused(self):
        for name in (".config", "include/config/kernel.release", "vmlinux"):
            kept = (self.tree / name).read_text()
            (self.tree / name).unlink()
            with self.subTest(name), self.assertRaisesRegex(LabError, r"has no \.config" if name == ".config" else "contains no kernel of User-Mode Linux"):
                own_uml.look(self.tree)
            self.write(name, kept)
        self.write("modules.order", "kernel/one.ko\n")
        with self.assertRaisesRegex(LabError, "lacks the module one.ko"):
            own_uml.look(self.tree)

    def test_uml_kernel_is_found_by_name_or_by_directory(self):
        with unittest.mock.patch.object(kernels, "find", lambda name: f"found {name}"):
            self.assertEqual(own_uml.named("um-debug"), "found um-debug")
            with self.assertRaisesRegex(LabError, "plain is not one"):
                own_uml.named("plain")
        self.assertEqual(own_uml.named(str(self.tree)).release, RELEASE)
        with self.assertRaisesRegex(LabError, "contains no kernel"):
            own_uml.named("none")


if __name__ == "__main__":
    unittest.main()
