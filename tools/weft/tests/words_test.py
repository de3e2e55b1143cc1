#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""What weft passes on of a command for machines: each of its words, and nothing else.

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


class Words(unittest.TestCase):
    def setUp(self):
        # As build/bin lies in a tree; the other half tells what it is called with.
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.weft = folder / "build/bin/weft"
        session = folder / "tools/weft/session/weft-session"
        for path in (self.weft, session):
            path.parent.mkdir(parents=True)
        shutil.copy(WEFT, self.weft)
        session.write_text(SESSION)
        session.chmod(0o755)

    def words(self, *given):
        done = subprocess.run([self.weft, *given], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    def test_run(self):
        for given, passed in ((["--", "uname -r; nproc"], ["uname -r; nproc"]), (["--", "true"], ["true"]), (["ls", "-l"], ["ls", "-l"]),
                              (["--on", "a", "--", "ls", "-l", "/x"], ["ls", "-l", "/x"]), (["--", "git", "log", "--", "x"], ["git", "log", "--", "x"]),
                              (["git", "log", "--", "x"], ["git", "log", "--", "x"])):
            words = self.words("run", *given)
            self.assertEqual(words[words.index("--") + 1:], passed)

    def test_shell(self):
        for given, passed in ((["a; b"], ["a; b"]), (["ls", "-l"], ["ls", "-l"]), (["--", "ls", "-l"], ["ls", "-l"]), (["--", "--odd"], ["--odd"]),
                              (["git", "log", "--", "x"], ["git", "log", "--", "x"]), (["--", "git", "log", "--", "x"], ["git", "log", "--", "x"])):
            words = self.words("lab", "shell", "node1", *given)
            self.assertEqual(words[words.index("node1") + 1:], passed)


if __name__ == "__main__":
    WEFT = sys.argv.pop()
    unittest.main()
