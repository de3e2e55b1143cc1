# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests labs with several places in virtual time, without guests: captures do not depend on the number of processes, a lost place ends the lab, and
labs that are not possible are refused.

    timed_places_test.py WEFTD
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
PLACES = "abcd"
# A message of a guest and the operations in it (tools/virtual_time/protocol.hpp): operation, sequence number, time.
MESSAGE = struct.Struct("=IIQ")
ACKNOWLEDGEMENT, START, REQUEST, WAIT, RUN = 0, 1, 2, 3, 6


def lab_of(settings='delay = "50us"'):
    """Returns a lab with a switch and an endpoint at each of four places. The first switch is linked to the others by trunks with these settings."""
    text = 'name = "timed"\n' + "".join(f'[[place]]\nname = "{place}"\n' for place in PLACES)
    for number, place in enumerate(PLACES, 1):
        text += (f'[[switch]]\nname = "leaf{number}"\nplace = "{place}"\n[[host]]\nname = "node{number}"\nmodel = "endpoint"\n'
                 f'[[link]]\nends = ["node{number}", "leaf{number}"]\n')
    return text + "".join(f'[[link]]\nends = ["leaf1/{30 + number}", "leaf{number}/30"]\n{settings}\n' for number in (2, 3, 4))


class TimedPlaces(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-timed-")))

    def start(self, name, groups, lab, events, options=()):
        """Starts a weftd for each group of places."""
        folder = self.folder / name
        (folder / "lab").mkdir(mode=0o700, parents=True)
        (folder / "lab.toml").write_text(lab)
        (folder / "events").write_text("".join(f"{json.dumps(event)}\n" for event in events))
        weftds = []
        for group in groups:
            command = [WEFTD, "--time-server", "--lab", "lab.toml", "--socket-dir", "lab", "--seed", "7", "--events", "events", *options]
            for place in group:
                command += ["--place", place]
            weftd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
            self.addCleanup(lambda weftd=weftd: (weftd.kill(), weftd.wait(), weftd.stderr.close()))
            weftds.append(weftd)
        return weftds

    def end(self, weftds, status=0):
        """Waits until all have ended; returns their logs."""
        logs = [weftd.communicate(timeout=TIME_LIMIT)[1] for weftd in weftds]
        self.assertEqual([weftd.returncode for weftd in weftds], [status] * len(weftds), "\n".join(logs))
        return logs

    def test_captures_are_the_same_with_one_two_and_four_processes(self):
        """The subnet manager at one place configures all switches over lossy trunks, of which one goes down and up. Each place's capture is the same."""
        events = [{"at": 0, "place": place, "command": "capture.start", "link": "all", "file": f"{place}.pcap"} for place in PLACES]
        events += [{"at": at, "place": "c", "command": f"link.{what}", "link": "leaf1/33-leaf3/30"} for at, what in ((1.5, "down"), (2, "up"))]
        events.append({"at": 20, "command": "shutdown"})
        captures = []
        for name, groups in (("one", ["abcd"]), ("two", ["ab", "cd"]), ("four", ["a", "b", "c", "d"])):
            # A capture has an absolute path.
            own = [{**event, "file": str(self.folder / name / event["file"])} if "file" in event else event for event in events]
            logs = self.end(self.start(name, groups, lab_of('delay = "50us"\njitter = "3us"\nloss = "2%"'), own))
            self.assertTrue(all("ends: a scheduled event requests it" in log for log in logs), logs)
            captures.append([(self.folder / name / f"{place}.pcap").read_bytes() for place in PLACES])
        self.assertGreater(min(map(len, captures[0])), 10000)
        self.assertTrue(captures[0] == captures[1] == captures[2], [list(map(len, each)) for each in captures])

    def test_killed_process_ends_the_others_and_its_place_is_named(self):
        # An event far away keeps the lab running: virtual time is fast without guests, so the lab has a guest that never connects.
        lab = lab_of().replace('name = "node4"\nmodel = "endpoint"', 'name = "node4"')
        weftds = self.start("lost", ["abc", "d"], lab, ())
        deadline = time.monotonic() + TIME_LIMIT
        while not (self.folder / "lost/lab/d/control.sock").is_socket():
            self.assertTrue(time.monotonic() < deadline and weftds[1].poll() is None)
            time.sleep(0.01)
        weftds[1].send_signal(signal.SIGKILL)
        (log,) = self.end(weftds[:1], 1)
        self.assertIn("ends: place d has left the lab, in the round until 0.000000001 s", log)

    def test_process_waits_for_a_guest_that_computes_when_its_own_places_have_ended(self):
        """How long a guest computes does not change how the lab ends. The process of place a, which serves the rounds, would otherwise exit after 5 seconds."""
        lab = lab_of().replace('name = "node4"\nmodel = "endpoint"', 'name = "node4"')
        refused = {"at": 1, "place": "a", "command": "link.down", "link": "nowhere"}
        weftds = self.start("slow", ["a", "bcd"], lab, [refused])
        sock = self.folder / "slow/lab/d/time.sock"
        deadline = time.monotonic() + TIME_LIMIT
        while not sock.is_socket():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        guest = self.enterContext(socket.socket(socket.AF_UNIX))
        guest.settimeout(TIME_LIMIT)
        guest.connect(str(sock))
        # The guest requests the time 1 s, gets it, and computes.
        for message in ((START, 1, 1), (REQUEST, 2, 10 ** 9), (WAIT, 3, 0)):
            guest.sendall(MESSAGE.pack(*message))
            self.assertEqual(MESSAGE.unpack(guest.recv(MESSAGE.size, socket.MSG_WAITALL))[:2], (ACKNOWLEDGEMENT, message[1]))
        operation, number, _ = MESSAGE.unpack(guest.recv(MESSAGE.size, socket.MSG_WAITALL))
        self.assertEqual(operation, RUN)
        guest.sendall(MESSAGE.pack(ACKNOWLEDGEMENT, number, 0))
        time.sleep(6)
        guest.sendall(MESSAGE.pack(WAIT, 4, 0))
        logs = self.end(weftds, 1)
        self.assertTrue(all("nowhere" in log for log in logs), logs)

    def test_unknown_places_are_refused(self):
        (log,) = self.end(self.start("place", ["x"], lab_of(), (), ["--check"]), 1)
        self.assertIn("'x'", log)
        (log,) = self.end(self.start("event", ["abcd"], lab_of(), [{"at": 1, "place": "x", "command": "link.down", "link": "leaf1/1"}]), 1)
        self.assertIn("'x'", log)

    def test_signal_ends_the_process_and_the_awaited_guest_is_named(self):
        lab = lab_of().replace('name = "node4"\nmodel = "endpoint"', 'name = "node4"')
        weftds = self.start("signal", ["abcd"], lab, ())
        deadline = time.monotonic() + TIME_LIMIT
        while not all((self.folder / f"signal/lab/{place}/control.sock").is_socket() for place in PLACES):
            self.assertTrue(time.monotonic() < deadline and weftds[0].poll() is None)
            time.sleep(0.01)
        weftds[0].terminate()
        (log,) = self.end(weftds, 1)
        self.assertIn("waited for node4, not yet on the time server", log)

    def test_processes_with_different_seeds_do_not_form_a_lab(self):
        first, = self.start("seeds", ["abc"], lab_of(), ())
        self.addCleanup(first.kill)
        other = subprocess.Popen([WEFTD, "--time-server", "--lab", "lab.toml", "--socket-dir", "lab", "--seed", "8", "--place", "d"],
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder / "seeds")
        self.addCleanup(lambda: (other.kill(), other.wait(), other.stderr.close()))
        (log,) = self.end([other], 1)
        self.assertIn("the server of the rounds has disconnected", log)

    def test_labs_that_are_not_possible_are_refused(self):
        for name, lab, said in (("delay", lab_of(""), "link leaf1/32-leaf2/30 connects the places 'a' and 'b', so it needs a delay in virtual time"),
                                ("trunk", lab_of() + '[[trunk]]\nname = "west"\nend = "leaf1/20"\nlisten = "127.0.0.1:7470"\nkey-file = "key"\n', "a lab in virtual time cannot have a [[trunk]]"),
                                ("ethernet", lab_of() + "".join(f'[[host]]\nname = "e{place}"\nethernet = "lan"\nplace = "{place}"\n' for place in "ab") + '[[ethernet]]\nname = "lan"\n',
                                 "the Ethernet 'lan' has hosts at several places, which is not possible in virtual time")):
            with self.subTest(name):
                (log,) = self.end(self.start(name, ["abcd"], lab, ()), 1)
                self.assertIn(said, log)

    def test_delay_of_a_trunk_cannot_be_changed(self):
        events = ({"at": 1, "place": "b", "command": "link.set", "link": "leaf1/32-leaf2/30", "settings": {"delay": "1us"}},)
        logs = self.end(self.start("set", ["ab", "cd"], lab_of(), events), 1)
        self.assertTrue(all("the delay of leaf1/32-leaf2/30, which connects two places, cannot be changed in virtual time" in log for log in logs), logs)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
