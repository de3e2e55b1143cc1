# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that modules are built again if, and only if, something that they depend on has changed."""
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from lab import cache, modules


class BuildIfChanged(unittest.TestCase):
    RELEASE = "6.1.0-test"
    NAMES = ("weft_core", "weft_mad")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name) / "tree"
        self.kdir = pathlib.Path(folder.name) / "kernel"
        for path in (self.kdir / "include/generated/utsrelease.h", self.tree / "core/mad/agent.cpp", self.tree / "core/mad/agent.hpp", self.tree / "Kbuild"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#define UTS_RELEASE "{self.RELEASE}"\n')
        for patch in (mock.patch.object(cache, "TREE", self.tree), mock.patch.object(modules, "build", self.build)):
            patch.start()
            self.addCleanup(patch.stop)
        self.builds = []

    def module(self, name):
        return self.tree / "build/modules" / self.RELEASE / f"{name}.ko"

    def build(self, kdir, names):
        self.builds.append(tuple(names))
        for name in names:
            self.module(name).parent.mkdir(parents=True, exist_ok=True)
            self.module(name).write_text(name)

    def builds_again(self, names=NAMES):
        before = len(self.builds)
        modules.build_if_changed(self.kdir, names)
        return len(self.builds) > before

    def test_second_build_of_the_same_modules_is_skipped(self):
        self.assertTrue(self.builds_again())
        self.assertFalse(self.builds_again())
        self.assertTrue(self.builds_again(("weft_core",)))
        self.assertFalse(self.builds_again(("weft_core",)))

    def test_modules_are_built_again_after_any_change(self):
        source = self.tree / "core/mad/agent.cpp"
        changes = {
            "a source has other contents": lambda: source.write_text("another length"),
            "a source has another time": lambda: os.utime(source, ns=(1, 1)),
            "a source is new": lambda: (self.tree / "core/mad/send.cpp").write_text(""),
            "a source is removed": (self.tree / "core/mad/agent.hpp").unlink,
            "the kernel tree has changed": lambda: (self.kdir / "Module.symvers").write_text(""),
            "a module is removed": self.module("weft_mad").unlink,
            "a module was built by another command": lambda: os.utime(self.module("weft_core"), ns=(1, 1)),
            "a variable of Kbuild is set": lambda: os.environ.update(KCFLAGS="-O1"),
            "another kind of build is requested": lambda: os.environ.update(DEBUG="1"),
        }
        with mock.patch.dict(os.environ):
            self.assertTrue(self.builds_again())
            for reason, change in changes.items():
                with self.subTest(reason):
                    self.assertFalse(self.builds_again())
                    change()
                    self.assertTrue(self.builds_again())

    def test_build_during_which_a_source_changes_is_repeated_by_the_next_call(self):
        def build(kdir, names):
            self.build(kdir, names)
            (self.tree / "core/mad/agent.cpp").write_text("changed during the build")

        with mock.patch.object(modules, "build", build):
            self.assertTrue(self.builds_again())
        self.assertTrue(self.builds_again())
        self.assertFalse(self.builds_again())

    def test_failed_build_is_repeated_by_the_next_call(self):
        with mock.patch.object(modules, "build", side_effect=RuntimeError), self.assertRaises(RuntimeError):
            modules.build_if_changed(self.kdir, self.NAMES)
        self.assertTrue(self.builds_again())


if __name__ == "__main__":
    unittest.main()
