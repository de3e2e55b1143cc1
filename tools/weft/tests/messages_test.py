#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the texts of weft and weftd: --help, messages about invalid command lines with their exit statuses, and other output.

    messages_test.py WEFT WEFTD
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from daemon import weft_in_a_tree
from manual_test import everything

HERE = pathlib.Path(__file__).resolve().parent
# What the library of the command line prints by default, which means nothing to a user.
INTERNAL = re.compile(r"\b(TEXT|U?INT|FLOAT|ENUM|BOOLEAN|REQUIRED|Needs|Excludes)\b|->")
VALUE = re.compile(r"^  (?:-.,)?(--[a-z-]+) (?=\S)", re.MULTILINE)
# Command lines of weft and the beginnings of their messages.
INVALID = {
    "lab": "weft lab: a command is missing: up, shell, restart, ",
    "link up": "weft link up: LINK is required",
    "link set node1 loss": "weft link set: 'loss' is not SETTING=VALUE",
    "top --sort 1": "weft top: --sort: '1' is not one of rate, errors, name",
    "top --interval abc": "weft top: --interval: 'abc' is not a number from 0.1 to 3600",
    "capture node1 -w": "weft capture: --write needs a value",
    "capture node1 -w x --seconds 0": "weft capture: --seconds: '0' is not a number from 0.001 to 1000000",
    "counters a b": "weft counters: unexpected argument: b",
    "run --card mlx4 --lab /dev/null true": "weft run: --lab cannot be combined with --card",
    "run --cpus 1.5 true": "weft run: --cpus: '1.5' is not an integer from 1 to 64",
    "card fault node1 cqe-number --count -1": "weft card fault: --count: '-1' is not an integer from 0 to 4294967295",
    "topology ring --switches 3 --model mlx6": "weft topology ring: --model: 'mlx6' is not one of mlx4, mlx5, ",
}
INVALID_OF_WEFTD = {"one": "weftd: unexpected argument: one", "--seed x": "weftd: --seed: 'x' is not an integer from 0 to ", "--bus 0": "weftd: --bus: '0' is not one of vfio-user, vhost-user"}


class Messages(unittest.TestCase):
    def test_help_names_the_values_of_options_in_lines_of_at_most_80_columns(self):
        for program in (WEFT, WEFTD):
            found = set()
            for command, _ in everything(program):
                text = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout
                options = text.partition("\nOptions:\n")[2].partition("\n\n")[0]
                self.assertIsNone(INTERNAL.search(text), text)
                self.assertEqual([line for line in options.splitlines() if len(line) > 80], [], command)
                found |= set(VALUE.findall(options))
            self.assertLessEqual({"--socket-dir", *(("--kernel", "--logs", "--timeout") if program == WEFT else ("--peer", "--seed"))}, found)

    def test_invalid_command_lines_are_refused_with_the_command_and_the_reason(self):
        for program, lines in ((WEFT, INVALID), (WEFTD, INVALID_OF_WEFTD)):
            for line, message in lines.items():
                done = subprocess.run([program, *line.split()], capture_output=True, text=True, check=False, timeout=60)
                first, last = done.stderr.splitlines()
                self.assertTrue(first.startswith(message), done.stderr)
                self.assertRegex(last, r"^Try 'weft.* --help'\.$")
                self.assertEqual(done.returncode, 2, line)

    def test_help_and_version_report_that_standard_output_cannot_be_written(self):
        for program, name in ((WEFT, "weft"), (WEFTD, "weftd")):
            for word in ("--help", "--version"):
                with self.subTest(program=name, word=word), open("/dev/full", "w", encoding="utf-8") as full:
                    done = subprocess.run([program, word], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                    self.assertEqual((done.returncode, done.stderr), (1, f"{name}: cannot write standard output: No space left on device\n"))

    def test_topology_reports_that_standard_output_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([WEFT, "topology", "ring", "--switches", "3"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "weft: cannot write standard output: No space left on device\n"))


class Daemon(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="weft-"))
        self.directory = pathlib.Path(folder) / "sockets"
        self.log = self.enterContext(open(pathlib.Path(folder) / "log", "w+", encoding="utf-8"))
        daemon = subprocess.Popen([WEFTD, "--socket-dir", self.directory, "--state-dir", "/none"], stderr=self.log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        limit = time.monotonic() + 60
        while not (self.directory / "control.sock").exists():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)

    def weft(self, *words):
        return subprocess.run([WEFT, "--socket-dir", self.directory, *words], capture_output=True, text=True, check=True, timeout=60).stdout

    def test_log_names_the_part_of_a_line_once(self):
        lines = self.weft("log", "sm")
        self.assertIn(" sm: weft SM is master\n", lines)
        self.assertNotIn("sm: sm:", lines)

    def test_corrupt_replies_prints_their_number(self):
        self.assertEqual(self.weft("sm", "corrupt-replies"), "corrupted replies so far: 0\n")

    def test_missing_state_directory_is_reported_with_its_reason(self):
        self.weft("sm", "sweep")
        self.log.seek(0)
        self.assertIn("/none/lids cannot be written (No such file or directory)", self.log.read())


if __name__ == "__main__":
    given, WEFTD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    with weft_in_a_tree(given) as WEFT:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
