# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that weftd notifies the service manager (sd_notify(3)) when clients can connect to its sockets, and when it stops.

    service_manager_test.py WEFTD
"""
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

TIMEOUT = 60    # seconds


class ServiceManager(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-notify-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.settimeout(TIMEOUT)
        self.addCleanup(self.manager.close)

    def start(self, name):
        process = subprocess.Popen([WEFTD, "--socket-dir", self.folder / "sockets"], env={"NOTIFY_SOCKET": name}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serves(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            return control.connect_ex(str(self.folder / "sockets/control.sock")) == 0

    def check(self, name):
        process = self.start(name)
        self.assertEqual(self.manager.recv(4096), b"READY=1")
        self.assertTrue(self.serves())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.manager.recv(4096), b"STOPPING=1")
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_sd_notify_ready_and_stopping_are_sent_to_a_socket_with_a_path(self):
        path = str(self.folder / "notify.sock")
        self.manager.bind(path)
        self.check(path)

    def test_sd_notify_ready_and_stopping_are_sent_to_an_abstract_socket(self):
        name = f"weft-notify-{uuid.uuid4()}"
        self.manager.bind(f"\0{name}")
        self.check(f"@{name}")

    def test_weftd_starts_even_if_the_notify_socket_does_not_exist(self):
        process = self.start(str(self.folder / "nothing.sock"))
        deadline = time.monotonic() + TIMEOUT
        while not self.serves() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(self.serves())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), 0)


if __name__ == "__main__":
    WEFTD = sys.argv.pop(1)
    unittest.main()
