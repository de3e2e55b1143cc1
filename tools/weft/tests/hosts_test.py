#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests labs over several hosts. Each host is simulated by a directory (stand_in_place.py). There are no guests."""
import base64
import contextlib
import errno
import itertools
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import channel  # noqa: E402
import hosts_file  # noqa: E402
import place_connection  # noqa: E402
import place_guest  # noqa: E402
import place_plan  # noqa: E402
import place_server  # noqa: E402
import places  # noqa: E402
import remote_place  # noqa: E402
import starters  # noqa: E402
from daemon import TIME_LIMIT, await_that  # noqa: E402
from lab import process  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.testing import full  # noqa: E402
from stand_in_place import VERSION  # noqa: E402

SESSION = HERE.parent / "session/weft-session"
STAND_IN = HERE / "stand_in_place.py"


class HostsFile(unittest.TestCase):
    def test_hosts_file_lines_are_parsed(self):
        text = "# two hosts\nb=user@second 192.0.2.2:7000  # its rack\n\nfirst\nthird [fd00::3]\nc=fourth [fd00::4]:9\n"
        self.assertEqual(hosts_file.parse(text, "hosts"), [hosts_file.Line("b", "user@second", "192.0.2.2", 7000), hosts_file.Line(None, "first", None, None),
                                                          hosts_file.Line(None, "third", "fd00::3", None), hosts_file.Line("c", "fourth", "fd00::4", 9)])

    def test_invalid_hosts_file_lines_are_refused(self):
        for text, said in (("a b c\n", "hosts:1: too many words"), ("\n-oProxyCommand=x\n", "hosts:2: "), ("-v\n", "'-v' is not a host"), ("a;b\n", "'a;b' is not a host"),
                           ("=a\n", "'' is not a name"), ("a/b=c\n", "'a/b' is not a name"), ("a name.example\n", "is not a numeric address"), ("a 0.0.0.0\n", "is not a numeric address"),
                           ("a 224.0.0.1\n", "is not a numeric address"), ("a fe80::1%eth0\n", "is not a numeric address"), ("a 1.2.3.4:0\n", "is not a numeric address"),
                           ("a 1.2.3.4:65536\n", "is not a numeric address"), ("# none\n", "has no host"), ("a [1.2.3.4\n", "is not a numeric address"), ("a=x\na=y\n", "two hosts have the place a")):
            with self.subTest(text), self.assertRaises(LabError) as caught:
                hosts_file.parse(text, "hosts")
            self.assertIn(said, str(caught.exception))

    def test_hosts_file_lines_that_name_no_part_of_the_lab_get_the_remaining_parts_in_order(self):
        lines = hosts_file.parse("b=x\ny\nz\nspare\n", "hosts")
        self.assertEqual({name: line.host for name, line in hosts_file.assign(lines, ["a", "b", "c"], "hosts").items()}, {"a": "y", "b": "x", "c": "z"})
        for text, said in (("x\n", "hosts has no host for the place b"), ("d=x\ny\n", "the lab has no place d: it has a, b")):
            with self.assertRaisesRegex(LabError, said):
                hosts_file.assign(hosts_file.parse(text, "hosts"), ["a", "b"], "hosts")


class MessagesBetweenHosts(unittest.TestCase):
    def test_long_messages_are_split_into_short_lines(self):
        decoder = channel.Decoder()
        for text in ("", "short", '"\\' * 5000, "é\n" * 3000):
            lines = channel.encode({"report": text}, 200).splitlines(keepends=True)
            self.assertLessEqual(max(map(len, lines)), 200)
            found = [message for line in lines if (message := decoder.decode(line)) is not None]
            self.assertEqual(found, [{"report": text}])

    def test_invalid_messages_raise_a_protocol_violation(self):
        for lines in ((b"text\n",), (b"[1]\n",), (b"[" * 60000 + b"\n",), (b"\xff\n",), (b'{"part": 1, "more": false}\n',), (b'{"part": "x"}\n',), (b'{"part": "", "more": true}\n',),
                      (b'{"part": "{", "more": true}\n', b'{"alive": true}\n'), (b'{"part": "{", "more": false}\n',)):
            decoder = channel.Decoder()
            with self.subTest(lines[0][:20]), self.assertRaises(channel.Violation):
                for line in lines:
                    decoder.decode(line)
        decoder = channel.Decoder()
        part = json.dumps({"part": "x" * 60000, "more": True}).encode()
        with self.assertRaisesRegex(channel.Violation, "a message of more than"):
            for _ in range(channel.LONGEST_MESSAGE // 60000 + 2):
                decoder.decode(part)

    def test_message_fields_are_validated(self):
        for call in (lambda: channel.text_of({}, "a", 9), lambda: channel.text_of({"a": 1}, "a", 9), lambda: channel.text_of({"a": "x" * 10}, "a", 9),
                     lambda: channel.number_of({"a": True}, "a", 0, 9), lambda: channel.number_of({"a": 10}, "a", 0, 9), lambda: channel.number_of({"a": -1}, "a", 0, 9),
                     lambda: channel.number_of({"a": 1.5}, "a", 0, 9), lambda: channel.bytes_of({"a": "?"}, "a", 9), lambda: channel.bytes_of({"a": "A" * 16}, "a", 9)):
            self.assertRaises(channel.Violation, call)


class StreamsBetweenHosts(unittest.TestCase):
    def pair(self):
        """Two ends whose messages reach the other one at once."""
        accepted = []
        ends = []
        ends.append(channel.Streams(lambda message: ends[1].take(message)))
        ends.append(channel.Streams(lambda message: ends[0].take(message), lambda stream, name: accepted.append((stream, name))))
        return ends, accepted

    def test_sender_blocks_while_the_receiver_has_a_full_window_of_unread_data(self):
        (near, _), accepted = self.pair()
        stream = near.open("lab")
        far, name = await_that("the other end", lambda: accepted and accepted[0])
        self.assertEqual(name, "lab")
        data = os.urandom(3 * channel.WINDOW)
        sender = threading.Thread(target=lambda: (stream.send(data), stream.end()), daemon=True)
        sender.start()
        sender.join(0.3)
        self.assertTrue(sender.is_alive())
        self.assertLessEqual(len(far._unread), channel.WINDOW)
        received = b""
        while piece := far.receive():
            received += piece
        self.assertEqual(received, data)
        sender.join(TIME_LIMIT)

    def test_messages_that_violate_the_stream_protocol_are_refused(self):
        (near, far), accepted = self.pair()
        stream = near.open("lab")
        await_that("the other end", lambda: accepted)
        piece = channel.to_text(bytes(channel.PIECE))
        with self.assertRaisesRegex(channel.Violation, "beyond the window"):
            for _ in range(channel.WINDOW // channel.PIECE + 2):
                far.take({"data": stream.number, "bytes": piece})
        for message in ({"data": stream.number, "bytes": channel.to_text(bytes(channel.PIECE + 1))}, {"taken": stream.number, "count": 1}, {"end": "x"}, {"open": 1, "socket": 2},
                        {"data": 0, "bytes": ""}):
            with self.subTest(message), self.assertRaises(channel.Violation):
                near.take(message)
        with self.assertRaisesRegex(channel.Violation, "must not open"):
            near.take({"open": 7, "socket": "lab"})
        with self.assertRaisesRegex(channel.Violation, "too many streams"):
            for number in range(2, channel.MOST_STREAMS + 3):
                far.take({"open": number, "socket": "lab"})

    def test_broken_connection_closes_all_streams(self):
        (near, _), accepted = self.pair()
        stream = near.open("lab")
        await_that("the other end", lambda: accepted)
        near.break_all()
        self.assertEqual(stream.receive(), b"")
        self.assertRaises(channel.Closed, stream.send, b"x")
        self.assertRaises(channel.Closed, near.open, "lab")


class UntrustedRemoteHost(unittest.TestCase):
    """What a place sends is checked, because others may control its host."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-places-")))
        self.reports = []
        plan = place_plan.PlannedPlace("a", None, None, 1, frozenset(["node1"]), True)
        self.place = place_connection.Place(0, plan, "host", None, threading.Condition(threading.RLock()), self.reports.append, self.reports.append, self.folder / "logs")
        self.place.send = lambda message: None

    def receive(self, *messages):
        for message in messages:
            self.place.receive(json.dumps(message).encode() + b"\n")

    HELLO = {"hello": 1, "version": "1", "node": "n", "address": None, "logs": "/x"}
    SERVES = {"serves": ["node1"]}

    def test_login_banner_before_the_first_message_is_skipped(self):
        self.place.receive(b"Welcome\n")
        self.receive(self.HELLO)
        self.assertEqual(self.place.hello["node"], "n")
        self.assertIsNone(self.place.failure)

    def test_remote_host_that_sends_an_invalid_message_is_marked_as_failed(self):
        for messages in ([{"x": 1}], [self.HELLO], [{"port": 0}], [{"port": 65536}], [{"serves": ["node2"]}], [{"serves": ["node1", "node1"]}], [{"serves": 1}],
                         [self.SERVES, self.SERVES], [{"report": 7}], [{"report": "x" * 70000}], [{"file": "../x", "offset": 0, "bytes": ""}], [{"file": "/x", "offset": 0, "bytes": ""}],
                         [{"file": ".x", "offset": 0, "bytes": ""}], [{"file": "x", "offset": 1, "bytes": ""}], [{"file": "x", "offset": 0, "bytes": "?"}],
                         [{"fetched": "x", "size": 1}], [{"ended": True, "incomplete": []}], [{"failed": "x"}], [{"failed": "x", "incomplete": [1]}], [{"open": 1, "socket": "lab"}], [{"data": -1, "bytes": ""}]):
            with self.subTest(str(messages)[:80]):
                self.setUp()
                self.receive(self.HELLO, *messages)
                self.assertIn("it sent ", self.place.failure)
                self.assertFalse(any(self.folder.glob("**/x")))

    def test_remote_host_that_sends_endless_text_before_its_first_message_is_marked_as_failed(self):
        for _ in range(place_connection.MOST_BANNER + 1):
            self.place.receive(b"Welcome\n")
        self.assertIn("too much text", self.place.failure)

    def test_control_characters_from_a_remote_host_do_not_reach_the_terminal(self):
        self.receive(self.HELLO, {"report": "\x1b[2J"}, {"note": "\x1b[2J"}, {"failed": "\x1b[2J", "incomplete": ["\x1b[2J"]})
        self.assertNotIn("\x1b", "".join([*self.reports, self.place.failure, *self.place.missing()]))

    def test_size_of_copied_logs_is_limited_and_symlinks_are_not_followed(self):
        (self.folder / "logs").mkdir()
        (self.folder / "victim").write_text("kept")
        (self.folder / "logs/node1.log").symlink_to(self.folder / "victim")
        self.receive(self.HELLO, self.SERVES, {"file": "node1.log", "offset": 0, "bytes": base64.b64encode(b"evil").decode()})
        self.assertIn("could not be written", self.place.failure)
        self.assertEqual((self.folder / "victim").read_text(), "kept")
        self.setUp()
        with unittest.mock.patch.object(place_connection, "MOST_COPIED", 5):
            self.receive(self.HELLO, {"file": "x", "offset": 0, "bytes": base64.b64encode(b"12345").decode()})
            self.assertIsNone(self.place.failure)
            self.receive({"file": "x", "offset": 5, "bytes": base64.b64encode(b"6").decode()})
        self.assertIn("more logs than are accepted", self.place.failure)

    def test_invalid_json_plan_of_a_lab_is_reported(self):
        for text in ("", "[]", '{"places": [{}]}', '{"places": [{"name": "a", "address": null, "trunks": [{"role": 1}]}]}'):
            with self.assertRaisesRegex(LabError, "is not understood"):
                place_plan.read_plan(text)


    # -- messages -------------------------------------------------------------------------------

    def test_progress_is_printed_on_one_line_until_the_remote_host_is_up(self):
        self.receive(self.HELLO, {"report": "x\nup"})
        self.assertEqual(self.reports, ["a: x up"])
        self.receive({"up": True}, {"report": "late"})
        self.assertEqual(self.reports, ["a: x up"])

    def test_failure_to_print_progress_is_not_reported_as_a_failure_to_write_the_log(self):
        for error, said in ((BrokenPipeError(errno.EPIPE, "Broken pipe"), "its progress could not be reported: Broken pipe"), (ValueError("I/O operation on closed file"), "closed file")):
            self.setUp()
            self.place._report = unittest.mock.Mock(side_effect=error)
            self.receive(self.HELLO, {"report": "x"})
            self.assertIn(said, self.place.failure)

    def test_unexpected_exception_fails_only_the_remote_host_that_caused_the_exception(self):
        """With srun, one thread reads the messages of all places."""
        self.place._take = unittest.mock.Mock(side_effect=ValueError("unexpected"))
        self.receive(self.HELLO)
        self.assertIn("unexpected", self.place.failure)

    def test_length_of_replies_from_a_remote_host_is_limited(self):
        for text in ("x" * 50, ""):
            self.place.ask = lambda request, text=text: itertools.repeat({"err": text}, 200)
            with unittest.mock.patch.object(place_connection, "MOST_ANSWERS", 150), self.assertRaisesRegex(LabError, "its answers are too long"):
                self.place.ask_for_status({}, lambda text: None)

    def test_length_and_number_of_remote_messages_are_limited(self):
        self.receive(self.HELLO, {"note": "x" * 60000})
        self.assertLess(len(self.reports[0]), 2 * place_connection.LONGEST_NOTE)
        lab = self.lab()
        for number in range(places.MOST_NOTES + 1):
            lab._take_note(str(number))
        found = []
        lab.look_after(found.append)
        self.assertEqual(found, [str(number) for number in range(1, places.MOST_NOTES + 1)])

    def lab(self, **more):
        """A lab that was not started."""
        args = types.SimpleNamespace(logs=self.folder / "logs", **more)
        return places.PlacedLab(self.folder, self.folder / "logs", args, None, self.reports.append, "run")

    # -- logs -----------------------------------------------------------------------------------

    def test_copied_logs_are_readable_only_by_the_user(self):
        self.receive(self.HELLO, {"file": "weftd.log", "offset": 0, "bytes": ""})
        self.assertEqual((self.folder / "logs/a/weftd.log").stat().st_mode & 0o777, 0o600)

    def test_blocked_log_write_of_one_remote_host_does_not_delay_other_remote_hosts(self):
        """The directory of the logs may be on a file system that hangs. The places share a lock."""
        other = place_connection.Place(1, self.place.plan, "other", None, self.place._changed, None, None, self.folder)
        begun, proceed = threading.Event(), threading.Event()
        self.place._write = lambda *_: (begun.set(), proceed.wait(TIME_LIMIT))
        self.receive(self.HELLO)
        writer = threading.Thread(target=self.receive, args=({"file": "weftd.log", "offset": 0, "bytes": ""},))
        writer.start()
        self.assertTrue(begun.wait(TIME_LIMIT))
        reader = threading.Thread(target=other.receive, args=(json.dumps(self.HELLO).encode() + b"\n",))
        reader.start()
        reader.join(1)
        received = other.hello
        proceed.set()
        for thread in (reader, writer):
            thread.join(TIME_LIMIT)
        self.assertTrue(received)

    def test_logs_that_could_not_be_copied_from_a_remote_host_are_reported(self):
        self.receive(self.HELLO, {"failed": "it broke", "incomplete": ["weftd.core was not copied"]})
        self.assertEqual((self.place.failure, self.place.missing()), ("it broke", ["weftd.core was not copied"]))
        for message in ({"ended": True, "incomplete": ["node1.log was not copied"]}, {"failed": "the file system is full", "incomplete": []}):
            self.setUp()
            self.place.ending = True
            self.receive(self.HELLO, message)
            self.assertEqual(self.place.missing(), message["incomplete"] or ["host (place a): the file system is full"])
        self.setUp()
        self.place.ending = True
        self.receive(self.HELLO, {"file": "x", "offset": 9, "bytes": ""})
        self.assertIn("it sent a file that is not valid", self.place.missing()[0])

    def answer_fetches(self, *messages):
        """The place answers a request for a file by these messages."""
        def send(message):
            if "fetch" in message:
                threading.Thread(target=lambda: self.receive(*[{**each, next(iter(each)): message["fetch"]} for each in messages])).start()
        self.place.send = send
        if not self.place.hello:
            self.receive(self.HELLO, self.SERVES)

    def test_missing_remote_file_is_not_created_locally(self):
        self.answer_fetches({"fetched": "", "size": None})
        self.assertIsNone(self.place.fetch("node1.log"))
        self.assertFalse((self.folder / "logs/node1.log").exists())
        self.setUp()
        self.answer_fetches({"fetched": "", "size": 0})
        self.assertEqual(self.place.fetch("node1.log").read_text(), "")

    def test_log_file_of_a_former_lab_is_replaced(self):
        (self.folder / "logs").mkdir()
        (self.folder / "logs/node1.log").write_text("former")
        self.answer_fetches({"fetched": "", "size": 0})
        self.assertEqual(self.place.fetch("node1.log").read_text(), "")

    def test_request_for_a_remote_file_times_out(self):
        self.receive(self.HELLO, self.SERVES)
        with unittest.mock.patch.object(place_connection, "FETCH_TIMEOUT", 0.1):
            for said in ("it has not sent node1.log within", "which was requested before"):
                with self.assertRaisesRegex(LabError, said):
                    self.place.fetch("node1.log")
        self.receive({"file": "node1.log", "offset": 0, "bytes": ""}, {"fetched": "node1.log", "size": 0})
        self.assertIsNone(self.place.failure)
        self.answer_fetches({"fetched": "", "size": 0})
        self.assertEqual(self.place.fetch("node1.log").read_text(), "")
        self.receive({"fetched": "x", "size": 0})
        self.assertIn("a file that was not requested", self.place.failure)

    def test_fetching_a_file_from_a_remote_host_fails_while_the_lab_ends(self):
        self.answer_fetches({"fetched": "", "size": 0})
        self.place.ending = True
        with self.assertRaisesRegex(LabError, "the lab is ending"):
            self.place.fetch("node1.log")

    # -- requests for weftd -----------------------------------------------------------------------

    def proxy(self, *exchanges):
        """Sends requests through a proxy of the place's control socket. exchanges: (request, answer of weftd or None); returns the answers."""
        answers = [json.dumps(answer).encode() + b"\n" for _, answer in exchanges if answer]
        self.passed_on = []
        stream = types.SimpleNamespace(send=self.passed_on.append, receive=lambda size=0: answers.pop(0) if answers else b"")
        near, far = socket.socketpair()
        near.settimeout(TIME_LIMIT)
        with near, far:
            near.sendall(b"".join(json.dumps(request).encode() + b"\n" for request, _ in exchanges))
            near.shutdown(socket.SHUT_WR)
            place_server.ControlProxy(self.place, far, stream).serve()
            far.shutdown(socket.SHUT_RDWR)
            return [json.loads(line) for line in near.makefile("rb")]

    def test_refused_capture_does_not_change_an_existing_capture_file(self):
        path = self.folder / "mine.pcapng"
        path.write_text("kept")
        copy = self.folder / "copy"
        copy.write_text("captured")
        self.place.fetch = unittest.mock.Mock(return_value=None)
        start = {"command": "capture.start", "file": str(path)}
        self.assertEqual([each["ok"] for each in self.proxy((start, {"ok": False, "error": "no such link"}))], [False])
        self.assertEqual((path.read_text(), self.place.fetch.call_count), ("kept", 0))
        # The file of the other host does not exist.
        self.proxy((start, {"ok": True}), ({"command": "capture.stop"}, {"ok": True}))
        self.assertEqual(path.read_text(), "kept")
        self.place.fetch = lambda name, remove: copy
        self.assertEqual([each["ok"] for each in self.proxy((start, {"ok": True}), ({"command": "capture.stop"}, {"ok": True}))], [True, True])
        self.assertEqual(path.read_text(), "captured")

    def test_capture_that_cannot_be_copied_is_reported(self):
        self.place.fetch = unittest.mock.Mock(side_effect=LabError("its host is full"))
        answers = self.proxy(({"command": "capture.start", "file": "/x"}, {"ok": True}), ({"command": "capture.stop"}, {"ok": True}))
        self.assertEqual(answers[1], {"ok": False, "error": "the capture could not be copied: its host is full"})

    def test_control_socket_of_a_remote_host_refuses_the_commands_lab_apply_and_shutdown(self):
        for command in ("lab.apply", "shutdown"):
            answers = self.proxy(({"command": command, "file": "lab.toml", "note": "capture.start"}, None), ({"command": "fabric.show"}, {"ok": True}))
            self.assertEqual([each["ok"] for each in answers], [False, True], command)
            self.assertEqual([json.loads(line)["command"] for line in self.passed_on], ["fabric.show"])

    # -- guests ---------------------------------------------------------------------------------

    def test_exit_status_above_255_is_refused(self):
        for status, valid in ((255, True), (256, False)):
            frames = [process.HEADER.pack(4, 0, process.EXIT) + struct.pack("<I", status)]
            stream = types.SimpleNamespace(send=lambda data: None, receive=lambda size=0, frames=frames: frames.pop(0) if frames else b"", close=lambda: None)
            self.place.streams.open = lambda name, stream=stream: stream
            guest = place_guest.RemoteGuest("node1", self.place)
            program = guest.start_program(["true"])
            with contextlib.nullcontext() if valid else self.assertRaisesRegex(LabError, "the exit status 256"):
                guest.wait_for_event("its end", lambda program=program: program.status is not None, TIME_LIMIT)

    # -- the plan -------------------------------------------------------------------------------

    def test_parts_of_a_lab_on_the_same_host_get_different_tcp_ports(self):
        lab = self.lab()
        answers = {"a": [20000], "b": [20001, 20001, 20002], "c": [20000]}
        for number, (name, address) in enumerate((("a", "127.0.0.1"), ("b", "127.0.0.1"), ("c", "192.0.2.1"))):
            plan = place_plan.PlannedPlace(name, None, None, 2, frozenset(), False)
            place = place_connection.Place(number, plan, "host", None, lab._changed, None, None, self.folder)
            place.hello = {"address": None}
            place.send = lambda message, place=place: setattr(place, "port", answers[place.name].pop(0))
            lab.places.append(place)
        given = ["127.0.0.1", "127.0.0.1", "192.0.2.1"]
        lab._starter = types.SimpleNamespace(address=lambda number: (given[number], None))
        lab._keep_alive = None
        with unittest.mock.patch.object(places.ipaddress.IPv4Address, "is_loopback", False):
            answers["a"] += [20010]
            peers = lab._find_addresses()
        self.assertEqual(peers, ["a=127.0.0.1:20010", "b=127.0.0.1:20001", "c=192.0.2.1:20000"])

    def read_plan(self, **more):
        return place_plan.read_plan(json.dumps({"places": [{"name": "a", "address": None, "switches": [], "hosts": [], "trunks": [{"link": "s1/1-s2/1", "role": "listens", "port": None}], **more}]}))[0]

    def test_plan_of_a_lab_part_may_have_no_address_or_an_address_without_a_tcp_port(self):
        for address, found in ((None, (None, None)), ("192.0.2.1", ("192.0.2.1", None)), ("[fd00::1]", ("fd00::1", None)), ("[fd00::1]:9", ("fd00::1", 9))):
            plan = self.read_plan(address=address)
            self.assertEqual((plan.address, plan.port), found)

    def test_lab_part_with_an_invalid_name_or_address_is_refused(self):
        for more, said in (({"address": "0.0.0.0:7470"}, "the address '0.0.0.0:7470' of the place a"), ({"address": "[::]"}, "is not one of a host"), ({"name": "-x"}, "cannot be called '-x'"),
                           ({"name": "lab.sock"}, "cannot be called"), ({"name": "node1.log"}, "cannot be called"), ({"name": "lab-ended"}, "cannot be called"), ({"name": ".."}, "cannot be called")):
            with self.subTest(more), self.assertRaises(LabError) as caught:
                self.read_plan(**more)
            self.assertIn(said, str(caught.exception))

    def test_lab_file_that_is_too_large_or_not_utf8_is_refused(self):
        path = self.folder / "lab.toml"
        for data, said in ((b"\xff", "is not text in UTF-8"), ("# é\n".encode() * (places.LONGEST_LAB // 5 + 1), "is longer than 2 MiB")):
            path.write_bytes(data)
            with self.assertRaisesRegex(LabError, said):
                self.lab(hosts=None, nodes=2, lab=path)._plan()

    # -- silence --------------------------------------------------------------------------------

    def test_silence_timeout_of_a_remote_host_starts_with_its_first_message(self):
        """A job may wait in a queue, and ssh for its connection."""
        self.place._last -= 10 * places.SILENCE
        self.assertFalse(self.place.is_silent())
        self.receive(self.HELLO)
        self.assertFalse(self.place.is_silent())
        self.place._last -= 10 * places.SILENCE
        self.assertTrue(self.place.is_silent())
        self.assertIsNone(starters.Slurm.connect_timeout)
        # Linux gives up a TCP connection after 127 s. The reason of ssh is reported then.
        self.assertGreater(starters.Ssh.connect_timeout, 130)
        self.assertGreater(remote_place.START_TIMEOUT, starters.Ssh.connect_timeout)


class RemoteHost(unittest.TestCase):
    """The program on a place's host."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-places-")))

    def test_core_dumps_of_any_size_and_logs_above_the_size_limit_are_not_copied(self):
        """A core dump can contain the key of the trunks."""
        for name in ("node1.log", "weftd-1.core", "weftd.core", "weftd.log"):
            (self.folder / name).write_text("x")
        os.truncate(self.folder / "node1.log", remote_place.MOST_LOG_BYTES + 1)
        (self.folder / "link").symlink_to("/dev/zero")
        files, omitted = remote_place.logs_to_send(self.folder)
        self.assertEqual([path.name for path in files], ["weftd.log"])
        self.assertEqual([text.partition(" ")[0] for text in omitted], ["node1.log", "weftd-1.core", "weftd.core"])
        with unittest.mock.patch.object(remote_place, "MOST_LOGS", 0):
            self.assertIn("1 files were not copied, because there are more than 0", remote_place.logs_to_send(self.folder)[1])

    def test_file_transfers_are_not_interleaved(self):
        """A request waits for the one before it, and none is answered while the final logs are sent."""
        sent = []
        place = remote_place.Place(None, self.folder, types.SimpleNamespace(send=sent.append, try_to_send=sent.append))
        (self.folder / "logs").mkdir()
        (self.folder / "logs/x.log").write_text("text")
        place.fetch({"fetch": "x.log", "offset": 0})
        place.fetch({"fetch": "y.log", "offset": 0})
        self.assertEqual([message.get("size", "part") for message in sent], ["part", 4, None])
        sent.clear()
        with place._sending:
            second = threading.Thread(target=place.fetch, args=({"fetch": "x.log", "offset": 0},))
            second.start()
            second.join(0.1)
            self.assertEqual(sent, [])
            place._fetches = False
        second.join(TIME_LIMIT)
        self.assertEqual(sent, [{"fetched": "x.log", "size": None}])

    def test_own_address_of_a_remote_host_is_read_from_the_ssh_or_slurm_environment(self):
        ssh = {"SSH_CONNECTION": "192.0.2.1 4711 192.0.2.2 22"}
        for environment, rank, address in (({}, None, None), (ssh, None, "192.0.2.2"), (ssh, 0, None), ({**ssh, "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}, 0, "127.0.0.1")):
            with self.subTest(environment), unittest.mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(remote_place.own_address(rank), address)


class StartedPrograms(unittest.TestCase):
    """ssh and srun."""

    def test_started_program_gets_time_to_exit_between_sigterm_and_sigkill(self):
        """srun cancels its job after SIGTERM. SIGKILL would leave the job in the queue."""
        with tempfile.TemporaryDirectory(prefix="weft-places-") as folder:
            done = pathlib.Path(folder, "done")
            script = f"trap 'sleep 0.1; touch {done}; exit' TERM; echo ready; while :; do sleep 0.1; done"
            ready = threading.Event()
            program = starters._Program(["sh", "-c", script], lambda _: ready.set(), lambda: None)
            self.assertTrue(ready.wait(TIME_LIMIT))
            # The time after SIGTERM begins with SIGTERM.
            with unittest.mock.patch.object(starters, "KILL_TIMEOUT", 2):
                program.finish(time.monotonic() + 2.1)
            for stream in (program._process.stdout, program._process.stderr):
                stream.close()
            self.assertTrue(done.exists())

    def test_messages_of_slurm_tasks_are_not_reported_as_messages_of_srun(self):
        starter = starters.Slurm("srun", "weft", 2)
        self.assertEqual(starter.said(), [])
        lines = ["srun: Job step aborted", "1: its session", "0: slurmstepd: error: *** STEP 1.0 ON a1 CANCELLED ***"]
        starter._program = types.SimpleNamespace(said=lambda: lines)
        self.assertEqual(starter.said(), ["srun: Job step aborted", "slurmstepd: error: *** STEP 1.0 ON a1 CANCELLED ***"])


class ReservedTcpPorts(unittest.TestCase):
    def listen(self, port, reuse):
        with socket.socket() as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            end.bind(("127.0.0.1", port))
            end.listen()

    def test_reserved_port_can_be_bound_only_with_so_reuseaddr(self):
        """weftd has SO_REUSEADDR."""
        port, sockets = remote_place.free_ports("127.0.0.1", 2)
        with sockets:
            for number in (port, port + 1):
                with self.assertRaises(OSError) as caught:
                    self.listen(number, 0)
                self.assertEqual(caught.exception.errno, errno.EADDRINUSE)
                self.listen(number, 1)
            with unittest.mock.patch.object(remote_place, "FIRST_PORT", port), unittest.mock.patch.object(remote_place, "LAST_PORT", port + 3), \
                    self.assertRaisesRegex(LabError, "there are no 2 free ports in a row"):
                remote_place.free_ports("127.0.0.1", 2)
        self.listen(port, 0)


# Each of these tests starts labs, which takes seconds, and repeats most of what another one does.
in_full_run = unittest.skipUnless(full(), "only with WEFT_FULL")


def processes_with(text):
    """Returns the command lines of the processes that contain a text, except this one's."""
    found = {}
    for path in pathlib.Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = b"\0" + (path / "cmdline").read_bytes() + b"\0" + (path / "environ").read_bytes()
                if text.encode() in line:
                    found[int(path.name)] = line
    return found


class LabOnSeveralHosts(unittest.TestCase):
    """Two hosts with one place each: first has node1 and node2, second has node3."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-places-")))
        self.directory = self.folder / "lab"
        self.directory.mkdir(mode=0o700)
        self.hosts = self.folder / "hosts"
        (self.folder / "tmp").mkdir()
        for host in ("first", "second", "task0", "task1"):
            (self.hosts / host).mkdir(parents=True)
        for program in ("weft", "weftd"):
            path = self.hosts / program
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "{STAND_IN}" {program} "$@"\n')
            path.chmod(0o755)
        (self.folder / "hosts.txt").write_text("first 127.0.0.1\nb=second 127.0.0.1\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "SLURM_"))}
        self.environment = {**environment, "WEFT_HOSTS": str(self.hosts), "TMPDIR": str(self.folder / "tmp")}
        self.addCleanup(self.end_all)

    def end_all(self):
        """A test that has failed leaves nothing behind."""
        for number in processes_with(str(self.folder)):
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)

    def words(self, command, *options, slurm=False):
        start = ["slurm:=true", "nodes:=2", f"srun={sys.executable} -B {STAND_IN} srun"] if slurm else [f"hosts={self.folder / 'hosts.txt'}", f"ssh={sys.executable} -B {STAND_IN} ssh"]
        return [sys.executable, "-B", str(SESSION), str(self.directory), command, f"weftd={self.hosts / 'weftd'}", f"version={VERSION}", "bare:=true", *start,
                f"remote_weft={self.hosts / 'weft'}", *options]

    def call(self, *words, **more):
        more = {"text": True, **({} if "input" in more else {"stdin": subprocess.DEVNULL}), **more}
        return subprocess.run(words, capture_output=True, check=False, env=self.environment, timeout=2 * TIME_LIMIT, **more)

    def session(self, *words, **more):
        return self.call(sys.executable, "-B", str(SESSION), str(self.directory), *words, **more)

    def up(self, *options, slurm=False):
        done = self.call(*self.words("up", *options, slurm=slurm))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def start(self, words):
        started = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(lambda: (started.kill(), started.communicate()))
        return started

    def control(self, place, **request):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.directory / place / "control.sock"))
            client.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(client.makefile("rb").readline())["result"]

    def remote(self, host, name="place"):
        """The process IDs of a command on a host, such as "place" for its session; the parent first."""
        marks = (f"WEFT_HOST={self.hosts / host}\0", f"\0{name}\0")
        return sorted(number for number, line in processes_with(marks[0]).items() if marks[1].encode() in line)

    def assert_nothing_is_left(self):
        await_that("the end of all processes", lambda: not processes_with(str(self.folder)) or time.sleep(0.2))
        for host in self.hosts.iterdir():
            if (host / "run").is_dir():
                self.assertEqual([path.name for path in (host / "run").iterdir()], [], host.name)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        self.assertEqual([path.name for path in self.directory.rglob("*") if path.is_socket()], [])

    def test_guests_on_both_hosts_are_included_in_captures_logs_and_weft_commands(self):
        (self.hosts / "second/banner").write_text("Welcome to this host.\n\n")
        for host in ("first", "second"):
            (self.hosts / host / "incomplete").write_text("")
        logs = self.folder / "logs"
        done = self.up(f"logs={logs}")
        self.assertIn("b: ", done.stderr)
        with self.subTest("captures"):
            self.check_captures()
        with self.subTest("key"):
            self.check_key()
        for host, place in (("node1", "first"), ("node3", "second")):
            shell = self.session("shell", f"host={host}", "--", "echo $GUEST at $WEFT_HOST; cat; exit 7", input="typed")
            self.assertEqual((shell.returncode, shell.stdout), (7, f"{host} at {self.hosts / place}\ntyped"), shell.stderr)
        large = os.urandom(1 << 20)
        copy = self.session("shell", "host=node3", "--", "cat", input=large, text=False)
        self.assertEqual((copy.returncode, copy.stdout == large), (0, True), copy.stderr)
        self.assertIn("there is no host node9: there is node1, node2, node3", self.session("shell", "host=node9", "--", "true").stderr)
        console = self.session("console", "host=node3")
        self.assertEqual((console.returncode, console.stdout), (0, "node3 boots\n"), console.stderr)
        self.assertEqual(self.session("check").returncode, 0)
        (self.hosts / "second/report").write_text("BUG: here")
        check = self.session("check")
        self.assertEqual((check.returncode, check.stderr), (125, "the kernel of node3 reported:\nBUG: here\n"))
        restart = self.session("restart", "--", "node1", "node3")
        self.assertEqual(restart.returncode, 0, restart.stderr)
        self.assertIn("node3: has ended", restart.stderr)
        for words in (("settle", "--"), ("upgrade", f"weftd={self.hosts / 'weftd'}")):
            self.assertIn("not possible in a lab over several hosts", self.session(*words).stderr)
        self.assertEqual([host["name"] for host in self.control("b", command="fabric.show")["hosts"]], ["node3"])
        (self.hosts / "second/incomplete").write_text("No space left on device")
        down = self.session("down")
        self.assertEqual((down.returncode, down.stderr), (1, f"{logs}/node3.log does not contain the whole console of node3: No space left on device\n"))
        self.assertEqual({str(path.relative_to(logs)): path.read_text() for path in logs.rglob("*") if path.is_file()},
                         {"node1.log": "node1 boots\n", "node2.log": "node2 boots\n", "node3.log": "node3 boots\n", "a/weftd.log": "weftd: begins\n", "b/weftd.log": "weftd: begins\n"})
        self.assert_nothing_is_left()
        # weftd was started with the place, all addresses and a key.
        (words,) = map(json.loads, (self.hosts / "second/weftd.json").read_text().splitlines())
        self.assertIn("--place=b", words)
        self.assertEqual([words[number + 1].rpartition(":")[0] for number, word in enumerate(words) if word == "--peer"], ["a=127.0.0.1"])

    def check_captures(self):
        """Captures are copied to the launching host."""
        path = self.folder / "b.pcapng"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.directory / "b/control.sock"))
            answers = client.makefile("rb")
            for request in ({"command": "capture.start", "file": str(path), "link": "all"}, {"command": "capture.stop"}):
                client.sendall(json.dumps(request).encode() + b"\n")
                self.assertTrue(json.loads(answers.readline())["ok"])
            self.assertEqual(path.read_text(), "captured at b")
            client.sendall(json.dumps({"command": "capture.start", "file": str(path), "link": "all", "at_once": True}).encode() + b"\n")
            self.assertIn("cannot be written to standard output", json.loads(answers.readline())["error"])
        path.unlink()
        self.control("b", command="capture.start", file=str(path), link="all")      # and disconnects
        await_that("the capture of a client that has disconnected", path.exists)

    def check_key(self):
        """The key of the trunks is in no command line, environment or file, and both hosts have the same one."""
        found = [self.control(place, command="key") for place in "ab"]
        self.assertEqual([(each["path"].partition(" ")[0], each["mode"]) for each in found], [("/memfd:weft-trunk-key", 0o600)] * 2)
        self.assertEqual(found[0]["key"], found[1]["key"])
        key = bytes.fromhex(found[0]["key"])
        self.assertEqual(len(key), places.KEY_BYTES)
        # Any notation, and also a part.
        for text in (key[:8], key.hex()[:16].encode(), base64.b64encode(key)[:16]):
            for number, line in processes_with(str(self.folder)).items():
                self.assertNotIn(text, line, number)
            for path in self.folder.rglob("*"):
                if path.is_file():
                    self.assertNotIn(text, path.read_bytes(), path)

    def assert_ended(self, said):
        """The lab has ended with this reason."""
        await_that("the end of the lab", lambda: not (self.directory / "lab.sock").exists())
        done = self.session("shell", "host=node1", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(said, done.stderr)
        self.assert_nothing_is_left()

    def test_lab_ends_when_the_process_that_runs_the_lab_on_one_remote_host_is_killed(self):
        self.up()
        os.kill(self.remote("second")[-1], signal.SIGKILL)
        self.assert_ended(f"no lab is up in {self.directory}, since second (place b): its session was killed by SIGKILL")

    @in_full_run
    def test_killed_ssh_ends_the_lab(self):
        self.up()
        ssh = [number for number, line in processes_with(str(self.hosts)).items() if b"\0ssh\0second\0" in line]
        os.kill(ssh[0], signal.SIGKILL)
        self.assert_ended("since second (place b): ")

    def test_lab_ends_on_all_hosts_when_the_process_that_started_the_lab_is_killed(self):
        self.up()
        (launcher,) = [number for number, line in processes_with(str(self.directory)).items() if b"\0up\0" in line]
        os.kill(launcher, signal.SIGKILL)
        await_that("the end of all places", lambda: not self.remote("first") and not self.remote("second"))
        self.assertEqual(self.session("down").returncode, 0)
        self.assertEqual([path for host in ("first", "second") for path in (self.hosts / host / "run").iterdir()], [])

    def test_host_that_cannot_be_reached_is_reported(self):
        (self.hosts / "second/refuse").write_text("ssh: connect to host second port 22: No route to host")
        done = self.call(*self.words("up"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("weft lab: second (place b): ", done.stderr)
        self.assertIn("No route to host", done.stderr)
        self.assert_nothing_is_left()

    @in_full_run
    def test_host_without_weft_is_reported(self):
        done = self.call(*[f"remote_weft={self.folder / 'none'}" if word.startswith("remote_weft") else word for word in self.words("up")])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"weft lab: (first|second) \(place [ab]\): ")
        self.assertIn("--remote-weft sets the path of weft there", done.stderr)

    @in_full_run
    def test_host_with_a_different_version_of_weft_is_refused(self):
        (self.hosts / "second/version").write_text("0.9")
        done = self.call(*self.words("up"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"weft lab: second (place b): its weft has version 0.9, and this one {VERSION}: install the same version on all hosts", done.stderr)
        self.assert_nothing_is_left()

    def test_guest_that_does_not_boot_is_reported_with_its_host(self):
        # The second line is not the message that the lab is up.
        (self.hosts / "second/fail").write_text("it broke\nup\n")
        done = self.call(*self.words("up"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("second (place b): node3: it broke", done.stderr)
        self.assertIn(f"(its console: {self.directory}/node3.log)", done.stderr)
        self.assertEqual((self.directory / "node3.log").read_text(), "node3 boots\n")
        self.assert_nothing_is_left()

    @in_full_run
    def test_interrupted_start_leaves_no_processes_or_files(self):
        (self.hosts / "second/slow").touch()
        starting = self.start(self.words("up"))
        await_that("the guest of the second host", lambda: self.remote("second", "sleep"))
        starting.send_signal(signal.SIGINT)
        said = starting.communicate(timeout=TIME_LIMIT)[1]
        self.assertEqual(starting.returncode, 130, said)
        self.assert_nothing_is_left()

    @in_full_run
    def test_two_labs_on_the_same_hosts_are_independent(self):
        self.up()
        again = self.call(*self.words("up"))
        self.assertEqual(again.returncode, 1)
        self.assertIn(f"a lab is up in {self.directory} already", again.stderr)
        first, self.directory = self.directory, self.folder / "other"
        self.up()
        self.assertEqual(self.session("shell", "host=node3", "--", "echo here").stdout, "here\n")
        ports = [word.rpartition(":")[2] for line in (self.hosts / "first/weftd.json").read_text().splitlines() for word in json.loads(line) if word.startswith("a=")]
        self.assertEqual((len(ports), len(set(ports))), (2, 2))
        self.assertEqual(self.session("down").returncode, 0)
        self.directory = first
        self.assertEqual(self.session("shell", "host=node3", "--", "echo here").stdout, "here\n")
        self.assertEqual(self.session("down").returncode, 0)
        self.assert_nothing_is_left()

    def test_unreachable_address_is_reported(self):
        (self.folder / "hosts.txt").write_text("first\nsecond 127.0.0.1\n")
        self.assertIn("first (place a): its address is not known", self.call(*self.words("up")).stderr)
        (self.folder / "hosts.txt").write_text("first 127.0.0.1\nsecond 192.0.2.1\n")
        self.assertIn("first (place a): the other hosts cannot reach its address 127.0.0.1: write one after", self.call(*self.words("up")).stderr)
        (self.folder / "hosts.txt").write_text("first 192.0.2.1\nsecond 192.0.2.2\n")
        self.assertIn("cannot listen at 192.0.2.", self.call(*self.words("up")).stderr)
        self.assert_nothing_is_left()

    def run_command(self, *words, slurm=False, **more):
        options, command = words[:words.index("--")], words[words.index("--"):]
        return self.call(*self.words("run", *options, "quiet:=true", slurm=slurm), *command, **more)

    def test_weft_run_returns_the_output_and_exit_status_of_the_command(self):
        done = self.run_command("on+=node3", "--", "echo $GUEST; cat; echo bad >&2; exit 5", input="typed")
        self.assertEqual((done.returncode, done.stdout), (5, "node3\ntyped"), done.stderr)
        self.assertIn("bad\n", done.stderr)
        self.assert_nothing_is_left_of_run(done.stderr)
        done = self.run_command("--", "echo $GUEST")
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines()), done.stderr), (0, [f"{name}: {name}" for name in ("node1", "node2", "node3")], ""))
        script = self.folder / "script"
        script.write_text("#@ node1\nexit 0\n#@ node3\nexit 4\n")
        self.assertEqual(self.call(*self.words("run", f"script={script}", "quiet:=true")).returncode, 4)

    def assert_nothing_is_left_of_run(self, said):
        for line in said.splitlines():
            if line.startswith("weft run: logs are kept in "):
                kept = pathlib.Path(line.rpartition(" in ")[2])
                self.assertEqual((kept / "node3.log").read_text(), "node3 boots\n")
                self.assertEqual((kept / "b/weftd.log").read_text(), "weftd: begins\n")
                subprocess.run(["rm", "-rf", kept], check=True)
        self.assert_nothing_is_left()

    def test_weft_run_returns_the_documented_exit_statuses(self):
        self.assertEqual(self.run_command("on+=node9", "--", "true").stderr, "weft: there is no host node9: there is node1, node2, node3\n")
        self.assertFalse(processes_with(str(self.folder)))
        (self.hosts / "first/report").write_text("BUG: here")
        done = self.run_command("on+=node3", "--", "true")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("weft run: the kernel of node1 reported:\nBUG: here", done.stderr)
        self.assert_nothing_is_left_of_run(done.stderr)

    @in_full_run
    def test_weft_run_reports_a_timeout_and_the_exit_of_a_guest(self):
        done = self.run_command("on+=node3", "timeout:=0.5", "--", "sleep 60")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assert_nothing_is_left_of_run(done.stderr)
        # The parent of the command's shell is the session; its guest is another child of it.
        done = self.run_command("on+=node3", "--", "pkill -KILL -P $PPID -x sleep; sleep 60")
        self.assertEqual(done.returncode, 126, done.stderr)
        self.assertIn("weft run: node3 ended", done.stderr)
        self.assert_nothing_is_left_of_run(done.stderr)

    def test_weft_run_ends_when_a_host_fails(self):
        said = "weft: second (place b): its session was killed by SIGKILL"
        done = self.run_command("on+=node3", "--", "kill -KILL $PPID")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(said, done.stderr)

    @in_full_run
    def test_weft_run_on_one_guest_ends_when_the_host_of_a_different_guest_fails(self):
        ready = self.folder / "ready"
        running = self.start([*self.words("run", "on+=node1", "quiet:=true"), "--", f"touch {ready}; sleep 1000"])
        await_that("the command", ready.exists)
        os.kill(self.remote("second")[-1], signal.SIGKILL)
        error = running.communicate(timeout=TIME_LIMIT)[1]
        self.assertEqual(running.returncode, 1, error)
        self.assertIn("weft: second (place b): its session was killed by SIGKILL", error)

    @in_full_run
    def test_interrupted_weft_run_forwards_the_signal_to_the_command(self):
        ready = self.folder / "ready"
        running = self.start([*self.words("run", "on+=node3", "quiet:=true"), "--", f"trap 'echo caught; exit 3' TERM; touch {ready}; while :; do sleep 0.1; done"])
        await_that("the command", ready.exists)
        running.send_signal(signal.SIGTERM)
        out, said = running.communicate(timeout=TIME_LIMIT)
        self.assertEqual((running.returncode, out), (143, "caught\n"), said)
        self.assert_nothing_is_left_of_run(said)

    # -- Slurm ----------------------------------------------------------------------------------

    def test_lab_is_started_by_srun(self):
        """Lines of srun are short, and the output of all tasks is in one stream. The number of nodes is that of the allocation."""
        self.assertEqual([starters.nodes_of(environment) for environment in ({}, {"SLURM_JOB_NUM_NODES": "3"}, {"SLURM_NNODES": "4"}, {"SLURM_NNODES": "x"})], [None, 3, 4, None])
        words = [word for word in self.words("up", slurm=True) if not word.startswith("nodes")]
        self.environment["SSH_CONNECTION"] = "192.0.2.1 4711 192.0.2.2 22"      # of the login node
        self.assertIn("the number of hosts is not known", self.call(*words).stderr)
        self.environment["SLURM_JOB_NUM_NODES"] = "2"
        done = self.call(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        words = json.loads((self.hosts / "task1/weftd.json").read_text())
        self.assertEqual(words[words.index("--peer") + 1].rpartition(":")[0], "a=127.0.0.1")
        self.assertEqual(self.session("shell", "host=node3", "--", "echo $SLURM_PROCID").stdout, "1\n")
        large = os.urandom(1 << 18)
        copy = self.session("shell", "host=node1", "--", "cat", input=large, text=False)
        self.assertEqual((copy.returncode, copy.stdout == large), (0, True), copy.stderr)
        self.assertEqual(self.session("down").returncode, 0)
        self.assertEqual((self.directory / "node3.log").read_text(), "node3 boots\n")
        self.assert_nothing_is_left()

    def test_lab_starts_when_its_queued_slurm_job_starts(self):
        """srun waits in a queue."""
        (self.hosts / "late").touch()
        starting = self.start(self.words("up", slurm=True))
        await_that("srun", lambda: (self.hosts / "waits").exists())
        (self.hosts / "late").unlink()
        said = starting.communicate(timeout=TIME_LIMIT)[1]
        self.assertEqual(starting.returncode, 0, said)
        self.assertEqual(self.session("down").returncode, 0)
        self.assert_nothing_is_left()

    def test_signal_terminates_a_waiting_srun(self):
        """srun gets SIGTERM at once, because it does not read its input while it waits."""
        (self.hosts / "late").touch()
        starting = self.start(self.words("up", slurm=True))
        await_that("srun", lambda: (self.hosts / "waits").exists())
        begin = time.monotonic()
        starting.send_signal(signal.SIGINT)
        said = starting.communicate(timeout=TIME_LIMIT)[1]
        self.assertEqual(starting.returncode, 130, said)
        self.assertLess(time.monotonic() - begin, places.KILL_SECONDS)
        self.assertTrue((self.hosts / "cancelled").exists())
        self.assert_nothing_is_left()

    @in_full_run
    def test_killed_slurm_task_ends_the_lab(self):
        self.up(slurm=True)
        os.kill(self.remote("task1")[-1], signal.SIGKILL)
        self.assert_ended("since n1 (place b): its session was killed by SIGKILL")



if __name__ == "__main__":
    unittest.main()
