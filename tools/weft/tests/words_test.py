#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that weft passes on all arguments of a command for guests, and no others.

    words_test.py WEFT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SESSION = """#!/bin/sh
for word in "$@"; do echo "$word"; done
"""


class CommandLineArguments(unittest.TestCase):
    def setUp(self):
        # In a tree, the program is in build/bin; the session program prints its arguments.
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.weft = folder / "build/bin/weft"
        session = folder / "tools/weft/session/weft-session"
        for path in (self.weft, session):
            path.parent.mkdir(parents=True)
        shutil.copy(WEFT, self.weft)
        session.write_text(SESSION)
        session.chmod(0o755)

    def run_weft(self, *given, check=False):
        return subprocess.run([self.weft, *given], capture_output=True, text=True, check=check, stdin=subprocess.DEVNULL, timeout=60)

    def words(self, *given):
        return self.run_weft(*given, check=True).stdout.splitlines()

    def test_weft_run_executes_the_command_given_after_its_options(self):
        for given, passed in ((["--", "uname -r; nproc"], ["uname -r; nproc"]), (["--", "true"], ["true"]), (["ls", "-l"], ["ls", "-l"]),
                              (["--on", "a", "--", "ls", "-l", "/x"], ["ls", "-l", "/x"]), (["--", "git", "log", "--", "x"], ["git", "log", "--", "x"]),
                              (["git", "log", "--", "x"], ["git", "log", "--", "x"])):
            words = self.words("run", *given)
            self.assertEqual(words[words.index("--") + 1:], passed)

    def test_weft_lab_shell_runs_the_command_given_after_the_node_name(self):
        for given, passed in ((["a; b"], ["a; b"]), (["ls", "-l"], ["ls", "-l"]), (["--", "ls", "-l"], ["ls", "-l"]), (["--", "--odd"], ["--odd"]),
                              (["git", "log", "--", "x"], ["git", "log", "--", "x"]), (["--", "git", "log", "--", "x"], ["git", "log", "--", "x"])):
            words = self.words("lab", "shell", "node1", *given)
            self.assertEqual(words[words.index("--") + 1:], passed)

    def test_options_after_the_command_are_passed_to_the_command(self):
        words = self.words("run", "--quiet", "ls", "--quiet", "--json")
        self.assertEqual(words[words.index("--") + 1:], ["ls", "--quiet", "--json"])

    def test_options_and_file_given_to_weft_hunt_are_passed_to_its_helper_program(self):
        words = self.words("hunt", "ipoib", "--seeds", "7", "--seed", "4294967295", "--out", "a b")
        self.assertEqual(words[1], "hunt")
        self.assertTrue({"seeds:=7", "seed:=4294967295", "out=a b", "action=run", "scenario=ipoib"} <= set(words), words)
        for scenario in ("verbs", "connected", "nvme", "srp", "rds", "probe", "removal"):
            self.assertTrue({"seeds:=2", "action=run", f"scenario={scenario}"} <= set(self.words("hunt", scenario, "--seeds", "2")))
        self.assertTrue({"card=mlx5", "kernel=a b"} <= set(self.words("hunt", "verbs", "--card", "mlx5", "--kernel", "a b")))
        for action in (("replay",), ("reduce", "--out", "x")):
            self.assertIn("kernel=k", self.words("hunt", action[0], __file__, *action[1:], "--kernel", "k"))
        self.assertTrue({"action=replay", f"file={__file__}", "logs=x"} <= set(self.words("hunt", "replay", __file__, "--logs", "x")))
        for given in (("ipoib", "--seeds", "0"), ("reduce", __file__), ("replay", "/none"), ("replay",), ("ipoib", "--card", "mlx9"), ("verbs", "--stack", "weft"), ()):
            self.assertNotEqual(self.run_weft("hunt", *given).returncode, 0, given)

    def test_unknown_arguments_are_refused_with_a_hint(self):
        for given, named, meant in ((("run", "--bogus", "--on", "node1", "--", "echo", "hi"), "--bogus", None),
                                    (("run", "--tiemout", "2", "--", "true"), "--tiemout", "--timeout"), (("fabrik", "show"), "fabrik", "fabric"),
                                    (("lab", "upp"), "upp", "up"), (("lab", "up", "--cpu", "2"), "--cpu", "--cpus"), (("link", "pu", "node1"), "pu", "up")):
            with self.subTest(given):
                done = self.run_weft(*given)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertIn(f"'{named}'", done.stderr)
                self.assertIn(f"did you mean '{meant}'?" if meant else "--help", done.stderr)

    def test_invalid_values_and_missing_commands_give_exit_status_2(self):
        for given in ((), ("lab",), ("run",), ("run", "--script", "-", "--", "true"), ("run", "--timeout", "soon", "--", "true"), ("run", "--cpus"),
                      ("capture",)):
            with self.subTest(given):
                done = self.run_weft(*given)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertTrue(done.stderr)


if __name__ == "__main__":
    WEFT = sys.argv.pop()
    unittest.main()
