#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that `weft capture LINK -w -` writes each packet to standard output as it is recorded, exits when its reader closes the pipe, and reports failed
writes.

    capture_test.py WEFT WEFTD
"""
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
import daemon

WEFT, WEFTD = sys.argv[1:3]
F_SETPIPE_SZ, PIPE = 1031, 4096     # the smallest pipe
SECTION, INTERFACE, PACKET = 0x0a0d0d0a, 1, 6       # the types of pcapng's blocks
LAB = """
[[switch]]
name = "switch1"

[[host]]
name = "node1"
model = "endpoint"

[[link]]
ends = ["node1", "switch1"]

[sm]
switch = "switch1"
"""


def block(stream):
    """Returns the type and the body of the next block of a pcapng file."""
    kind, length = struct.unpack("<II", stream.read(8))
    return kind, stream.read(length - 8)[:-4]


class WeftCapture(unittest.TestCase):
    def setUp(self):
        self.weftd, self.directory = self.enterContext(daemon.weftd(WEFTD, LAB))

    def weft(self, *words):
        return subprocess.run([WEFT, "--socket-dir", self.directory, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout

    def capture(self, *words):
        return self.enterContext(daemon.process(WEFT, "--socket-dir", str(self.directory), "capture", *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))

    def captured(self):
        """Returns the number of packets recorded so far; None if nothing is captured."""
        links = json.loads(self.weft("--json", "fabric", "show"))["links"]
        return max((link["captured_packets"] for link in links if "captured_packets" in link), default=None)

    def is_captured(self):
        return self.captured() is not None

    def test_packets_are_written_while_the_capture_runs(self):
        running = self.capture("all", "-w", "-")
        self.assertEqual(block(running.stdout)[0], SECTION)
        for _ in range(3):
            self.weft("sm", "sweep")
            kind, body = block(running.stdout)
            while kind == INTERFACE:
                kind, body = block(running.stdout)
            self.assertEqual(kind, PACKET)
            # An ERF record of InfiniBand with a whole packet.
            self.assertEqual(body[20 + 8], 21)
        self.assertEqual(list(self.directory.glob("capture-*")), [])

    def test_capture_stops_when_its_pipe_is_closed(self):
        running = self.capture("all", "-w", "-")
        block(running.stdout)
        self.assertTrue(self.is_captured())
        running.stdout.close()
        self.assertEqual(running.wait(daemon.TIME_LIMIT), 0)
        self.assertFalse(self.is_captured())

    def test_packets_captured_before_a_signal_are_written(self):
        running = self.capture("all", "-w", "-")
        block(running.stdout)
        self.weft("sm", "sweep")
        daemon.await_that("packets of the sweep", self.captured)
        running.send_signal(signal.SIGINT)
        self.assertGreater(len(running.stdout.read()), 32 + 16 + 290)
        self.assertEqual(running.wait(daemon.TIME_LIMIT), 0)

    def test_second_signal_stops_a_capture_whose_reader_stalls(self):
        running = self.capture("all", "-w", "-")
        block(running.stdout)
        fcntl.fcntl(running.stdout, F_SETPIPE_SZ, PIPE)

        def more_than_a_pipe_holds():
            self.weft("sm", "sweep")
            return self.captured() * 300 > 4 * PIPE
        daemon.await_that("packets", more_than_a_pipe_holds)
        # The first signal stops the capture; after the second, weft does not wait for the reader.
        running.send_signal(signal.SIGINT)
        daemon.await_that("the end of the capture", lambda: not self.is_captured())
        running.send_signal(signal.SIGINT)
        running.wait(daemon.TIME_LIMIT)

    def test_capture_to_a_terminal_is_refused(self):
        master, slave = pty.openpty()
        done = subprocess.run([WEFT, "--socket-dir", self.directory, "capture", "all", "-w", "-"], stdin=subprocess.DEVNULL, stdout=slave,
                              stderr=subprocess.PIPE, text=True, timeout=daemon.TIME_LIMIT, check=False)
        os.close(slave)
        os.close(master)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tshark", done.stderr)

    def test_capture_that_cannot_be_written_is_reported(self):
        """weftd buffers the packets, so the file of a full disk can be opened, and some packets are counted."""
        done = subprocess.run([WEFT, "--socket-dir", self.directory, "capture", "all", "-w", "/dev/full", "--seconds", "0.1"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=daemon.TIME_LIMIT, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full is incomplete", done.stderr)


class CaptureSizeLimit(unittest.TestCase):
    def test_capture_that_reaches_its_size_limit_is_reported(self):
        """On the host of a place, the control socket of the whole lab limits captures."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="weft-"))
        server = self.enterContext(socket.socket(socket.AF_UNIX))
        server.bind(f"{folder}/control.sock")
        server.listen()

        def serve():
            client, _ = server.accept()
            with client, client.makefile("rb") as requests:
                for result in ({"links": ["x"]}, {"packets": 3, "full": True, "limit": 64 << 20}):
                    number = json.loads(requests.readline()).get("id")
                    client.sendall(json.dumps({"ok": True, "result": result} | ({} if number is None else {"id": number})).encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = subprocess.run([WEFT, "--socket-dir", folder, "capture", "all", "-w", f"{folder}/x", "--seconds", "0.01"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=daemon.TIME_LIMIT, check=False)
        thread.join(daemon.TIME_LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("64 MiB, which is the limit", done.stderr)
        self.assertNotIn("is its disk full", done.stderr)


class StandardOutput(unittest.TestCase):
    """Output of weft's commands that cannot be written."""
    def setUp(self):
        _, self.directory = self.enterContext(daemon.weftd(WEFTD, LAB))

    def weft(self, *words, **streams):
        return subprocess.run([WEFT, "--socket-dir", self.directory, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=daemon.TIME_LIMIT, check=False, **streams)

    def test_failed_write_to_standard_output_is_reported(self):
        for words in (("fabric", "show"), ("counters", "--all"), ("--json", "fabric", "show"), ("log",), ("fabric", "show", "--svg", "-")):
            with self.subTest(words), open("/dev/full", "w", encoding="ascii") as full:
                done = self.weft(*words, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write standard output: No space left on device", done.stderr)

    def test_reason_why_a_picture_of_the_fabric_cannot_be_written_is_reported(self):
        for path, reason in (("/dev/full", "No space left on device"), ("/nonexistent/fabric.svg", "No such file or directory")):
            done = self.weft("fabric", "show", "--svg", path, stdout=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (1, f"weft: cannot write {path}: {reason}\n"))

    def test_output_is_discarded_if_standard_output_is_closed(self):
        """weft's Python programs do the same."""
        done = self.weft("fabric", "show", preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
