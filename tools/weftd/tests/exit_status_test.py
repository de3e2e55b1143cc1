#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the exit status of weftd in virtual time, and with scheduled events in real time.

    exit_status_test.py WEFTD
"""
import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

WEFTD = sys.argv[1]
TIME_LIMIT = 60
# Time advances at once, because an endpoint has no guest that would have to connect first.
ENDPOINTS = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
model = "endpoint"
[[link]]
ends = ["node1", "switch1"]
"""
POLLED = ENDPOINTS.replace('"endpoint"', '"mlx5"\ndoorbells = "polled"')
GUEST = ENDPOINTS.replace('model = "endpoint"\n', "")
SHUTDOWN = {"at": 1, "command": "shutdown"}
REFUSED = {"at": 1, "command": "link.down", "link": "nowhere"}
# Operation, sequence number, time: the first message of a guest, which has its number (tools/virtual_time/protocol.hpp).
START = struct.pack("=IIQ", 1, 1, 1)


class ExitStatus(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-status-")))
        self.sockets = self.folder / "sockets"
        self.finished = self.folder / "finished"

    def start(self, lab, *events, finished=True, options=("--time-server",)):
        self.sockets.mkdir(mode=0o700)
        (self.folder / "lab.toml").write_text(lab)
        (self.folder / "events").write_text("".join(f"{json.dumps(event)}\n" for event in events))
        command = [WEFTD, *options, "--socket-dir", self.sockets, "--lab", self.folder / "lab.toml", "--events", self.folder / "events"]
        if finished:
            command += ["--finished-file", self.finished]
        weftd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (weftd.kill(), weftd.wait(), weftd.stderr.close()))
        return weftd

    def guest(self, weftd):
        """Connects as a guest does; returns the socket once weftd has accepted the guest."""
        path = self.sockets / "time.sock"
        deadline = time.monotonic() + TIME_LIMIT
        while not (self.sockets / "control.sock").is_socket():
            self.assertIsNone(weftd.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        guest = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        guest.settimeout(TIME_LIMIT)
        guest.connect(str(path))
        guest.sendall(START)
        self.assertEqual(len(guest.recv(len(START), socket.MSG_WAITALL)), len(START))
        return guest

    def check(self, weftd, status, said):
        _, err = weftd.communicate(timeout=TIME_LIMIT)
        self.assertEqual(weftd.returncode, status, err)
        self.assertIn(said, err)

    def test_scheduled_shutdown_gives_status_0(self):
        self.check(self.start(ENDPOINTS, SHUTDOWN), 0, "ends: a scheduled event requests it")

    def test_scheduled_event_that_weftd_refuses_gives_status_1_in_virtual_time(self):
        """The status is also 1 if a guest has finished, because the event is wrong."""
        self.finished.touch()
        self.check(self.start(ENDPOINTS, REFUSED, {**SHUTDOWN, "at": 2}), 1, "ends: a scheduled event was refused")

    def test_scheduled_events_run_at_their_times_without_virtual_time(self):
        began = time.monotonic()
        weftd = self.start(ENDPOINTS, {**REFUSED, "link": "node1", "at": 0.1}, {**SHUTDOWN, "at": 0.5}, finished=False, options=())
        self.check(weftd, 0, "ends: a scheduled event requests it")
        self.assertGreaterEqual(time.monotonic() - began, 0.5)

    def test_scheduled_event_that_weftd_refuses_gives_status_1_without_virtual_time(self):
        weftd = self.start(ENDPOINTS, {**REFUSED, "at": 0.1}, {**SHUTDOWN, "at": 3600}, finished=False, options=())
        self.check(weftd, 1, "ends: a scheduled event was refused")

    def test_scheduled_events_cannot_be_combined_with_a_state_file(self):
        weftd = self.start(ENDPOINTS, SHUTDOWN, finished=False, options=("--state", self.folder / "state"))
        _, err = weftd.communicate(timeout=TIME_LIMIT)
        self.assertEqual(weftd.returncode, 2, err)
        self.assertRegex(err, "--(state cannot be combined with --events|events cannot be combined with --state)")

    def test_polled_doorbells_are_refused_in_virtual_time(self):
        self.check(self.start(POLLED, SHUTDOWN), 1, "host 'node1' has doorbells = \"polled\", which --time-server does not permit")

    def test_guest_exit_gives_status_1_if_the_file_that_marks_the_lab_as_finished_does_not_exist(self):
        for finished in (True, False):
            with self.subTest(finished):
                weftd = self.start(GUEST, finished=finished)
                self.guest(weftd).close()
                self.check(weftd, 1, "ends: node1 has left the time server")
                subprocess.run(["rm", "-rf", self.sockets], check=True)

    def test_guest_exit_gives_status_0_if_the_file_that_marks_the_lab_as_finished_exists(self):
        weftd = self.start(GUEST)
        guest = self.guest(weftd)
        self.finished.touch()
        guest.close()
        self.check(weftd, 0, "ends: node1 has left the time server")

    def test_termination_by_signal_gives_status_0(self):
        weftd = self.start(GUEST)
        self.guest(weftd)
        weftd.send_signal(signal.SIGTERM)
        self.check(weftd, 0, "ends on Terminated")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
