# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests what a first demonstration installs and builds: the package sets of `scripts/setup` on a host without any of the packages, and the modules of
`make demo`."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import tempfile
import threading
import types
import unittest
import unittest.mock

from lab import cache

SETUP = cache.TREE / "scripts/setup"
# Packages for tests and checks, which would double the time of the first demonstration.
ONLY_FOR_TESTS = {"chromium", "clang-19", "clang-format-19", "clang-tidy-19", "lintian", "python3-sphinx", "tshark"}


def stub(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        stub(self.folder, "dpkg-query", "exit 1")       # no package is installed
        stub(self.folder, "id", "echo 0")
        stub(self.folder, "apt-get", f'echo "$@" >>{self.folder}/apt')

    def run_setup(self, *words):
        return subprocess.run([SETUP, *words], env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)

    def missing(self, *words):
        done = self.run_setup("--missing", *words)
        self.assertEqual((done.returncode, done.stderr.count("usage")), (1, 0))
        return set(done.stdout.split())

    def test_each_package_set_contains_the_next_smaller_set(self):
        lab, demo, everything = self.missing("lab"), self.missing("demo"), self.missing()
        self.assertTrue(lab < demo < everything, (lab - demo, demo - everything))
        self.assertEqual(everything, self.missing("all"))

    def test_demo_package_set_excludes_packages_that_only_tests_and_checks_need(self):
        self.assertEqual(self.missing("demo") & ONLY_FOR_TESTS, set())
        self.assertLessEqual(ONLY_FOR_TESTS, self.missing("all"))

    def test_setup_installs_missing_packages_and_prints_the_duration(self):
        done = self.run_setup("lab")
        self.assertEqual(done.returncode, 0, done.stderr)
        installed = (pathlib.Path(self.folder) / "apt").read_text().split("--no-install-recommends ")[1].split()
        self.assertEqual(set(installed), self.missing("lab"))
        self.assertIn(f"installing {len(installed)} packages", done.stdout)
        self.assertRegex(done.stdout, r"done after \d+ s")

    def test_unknown_package_set_is_refused(self):
        for words in (("dmeo",), ("demo", "all"), ("--missing", "dmeo")):
            done = self.run_setup(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("usage: setup [--missing] [lab|demo|all]", done.stderr)
        self.assertFalse((pathlib.Path(self.folder) / "apt").exists())


def load_demo():
    loader = importlib.machinery.SourceFileLoader("demo", str(cache.TREE / "scripts/demo"))
    demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
    loader.exec_module(demo)
    return demo


class Demo(unittest.TestCase):
    def test_build_failure_is_printed_before_the_demo_waits_for_downloads(self):
        """The compiler fails while the image is fetched. The error is printed at once, followed by what the program waits for."""
        demo, errors, output, ended = load_demo(), io.StringIO(), io.StringIO(), threading.Event()

        def build(*_):
            raise demo.LabError("weftd and weft do not build")

        def say(running, text):
            running.step = text
            output.write(text)
            if "Ctrl-C stops them" in text:
                self.assertIn("do not build", errors.getvalue())
                ended.set()

        with unittest.mock.patch.multiple(demo.Demo, install=lambda self: None, fetch=lambda self: ended.wait(30), say=say), \
                unittest.mock.patch.object(demo.modules, "make", build), unittest.mock.patch("sys.argv", ["demo"]), \
                unittest.mock.patch.object(demo.signal, "signal"), contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as caught:
            demo.main()
        self.assertEqual(caught.exception.code, 1)
        self.assertTrue(ended.is_set(), "the wait is not announced")
        self.assertIn("weftd and weft do not build", errors.getvalue())

    def test_second_demo_waits_until_the_first_demo_has_ended(self):
        """Both use the directory build/demo. The second one says why it waits."""
        demo, began = load_demo(), threading.Event()
        lock = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "build/lock"

        class Waits(io.StringIO):
            def flush(self):
                if "waiting for another demonstration" in self.getvalue():
                    began.set()

        errors = Waits()
        runs = []
        with unittest.mock.patch.multiple(demo, LOCK=lock, run=lambda *_: runs.append(began.is_set())), unittest.mock.patch("sys.argv", ["demo"]), \
                unittest.mock.patch.object(demo.signal, "signal"), contextlib.redirect_stderr(errors):
            with demo.cache.locked_file(lock, "nothing"):
                second = threading.Thread(target=demo.main)
                second.start()
                self.assertTrue(began.wait(30), errors.getvalue())
                self.assertEqual(runs, [])
            second.join()
        self.assertEqual(runs, [True])

    def test_only_drivers_of_cards_in_the_demo_are_built(self):
        demo = load_demo()
        drivers = {"weft_mlx4", "weft_mthca", "weft_amso1100"}
        for card, needed in (("mlx4", {"weft_mlx4"}), ("mlx5", {"weft_mlx4"}), ("mthca", {"weft_mlx4", "weft_mthca"})):
            names = demo.Demo.needed_modules(types.SimpleNamespace(card=card))
            self.assertEqual(drivers & set(names), needed)
            self.assertIn("weft_ipoib", names)


if __name__ == "__main__":
    unittest.main()
