# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that QEMU does not outlive the process that started it."""
import pathlib
import signal
import subprocess
import tempfile
import unittest

from lab import cache
from lab.waiting import wait_until


def running(log):
    return subprocess.run(["pgrep", "-f", f"path={log}"], capture_output=True, text=True, check=False).stdout.split()


class Leash(unittest.TestCase):
    def end_by(self, number):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "console.log"
            runner = subprocess.Popen([cache.TREE / "scripts/guest", "run", "--kernel", "stock", "--log", log, "--command", "echo up; sleep 1000"],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(runner.stdout.readline(), b"up\n")
            self.assertTrue(running(log))
            runner.send_signal(number)
            runner.wait(20)
            runner.stdout.close()
            wait_until("QEMU to be gone", lambda: not running(log), 10)

    def test_qemu_exits_after_its_parent_gets_sigkill(self):
        self.end_by(signal.SIGKILL)

    def test_qemu_exits_after_its_parent_gets_sigterm(self):
        self.end_by(signal.SIGTERM)

    def test_qemu_exits_after_its_parent_gets_sigint(self):
        self.end_by(signal.SIGINT)
