#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that clients can use their cards and links after weftd was killed ten times at random moments and was started again, as weft-session does it.
The test's own clients replace QEMU; there are no guests.

    kills_test.py WEFTD
"""
import array
from concurrent import futures
import contextlib
import json
import os
import pathlib
import queue
import random
import signal
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import keeping  # noqa: E402
from daemon import TIME_LIMIT, await_that  # noqa: E402
from keeping import HEADER  # noqa: E402
from weftd_process import STATE, Daemon  # noqa: E402

KILLS = 10
HOSTS = ("a", "b")
LAB = """
[[switch]]
name = "s1"
ports = 8
[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "spare"
model = "endpoint"
[[link]]
ends = ["a", "s1"]
[[link]]
ends = ["b", "s1"]
[[link]]
ends = ["spare", "s1"]
"""
PAGE = 4096
BAR0, CONFIG = 0, 7
MELLANOX = 0x15b3
# The command register (include/hw/mellanox_icm/commands.hpp).
COMMAND, GO, STATUS, NOP = 0x80680, 1 << 23, 24, 0x31
ABANDONED = 0.5     # seconds after which a client considers a read lost; QEMU waits for five


class Client(threading.Thread):
    """A vfio-user client that reads its card's vendor ID again and again, and from time to time runs a command on the card."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._number = 0
        self._pending = b""
        self._work = queue.SimpleQueue()
        self._ended = False
        self.vendors = 0        # number of replies with the vendor ID
        self.ones = 0           # number of replies of a failed card
        self.returned = 0.0     # time of the first reply after a read that the card did not answer
        self.error = None
        memory = os.memfd_create("guest")
        os.ftruncate(memory, PAGE)
        assert self.ask(keeping.VERSION, b"\0\0\1\0{}\0") is not None
        assert self.ask(keeping.DMA_MAP, keeping.MAP.pack(keeping.MAP.size, 3, 0, 0, PAGE), [memory]) is not None
        os.close(memory)

    def run(self):
        answer = None
        try:
            while not self._ended:
                with contextlib.suppress(queue.Empty):
                    self._work.get_nowait()()
                before, answer = answer, self.read(CONFIG, 0, "<H", ABANDONED)
                if answer == MELLANOX != before:
                    self.returned = time.monotonic()
                self.vendors += answer == MELLANOX
                self.ones += answer == 0xffff
                if answer not in (None, MELLANOX, 0xffff):
                    raise AssertionError(f"vendor {answer:#x}")
        except Exception as error:
            self.error = error

    def do(self, work):
        """Calls work(self) on this thread, between two reads; returns its result."""
        done = futures.Future()

        def run():
            try:
                done.set_result(work(self))
            except Exception as error:
                done.set_exception(error)

        self._work.put(run)
        return done.result(TIME_LIMIT)

    def end(self):
        self._ended = True
        self.join(TIME_LIMIT)
        self.close()
        if self.error:
            raise self.error

    def close(self):
        self._socket.close()

    def ask(self, command, body, descriptors=(), time_limit=TIME_LIMIT):
        """Returns the body of the reply; None if there is none in time, for example if weftd was killed after it had read the request."""
        self._socket.settimeout(time_limit)
        self._number = self._number % 0xffff + 1
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self._socket.sendmsg([HEADER.pack(self._number, command, HEADER.size + len(body), 0, 0) + body], rights)
        while True:
            try:
                number, _, size, flags, _ = HEADER.unpack(self._receive(HEADER.size))
                answer = self._receive(size)
            except TimeoutError:
                return None
            self._pending = self._pending[size:]
            if number == self._number:      # otherwise it is a late reply
                assert not flags & keeping.ERROR
                return answer[HEADER.size:]

    def _receive(self, size):
        while len(self._pending) < size:
            piece = self._socket.recv(65536)
            if not piece:
                raise ConnectionError("the connection was closed")
            self._pending += piece
        return self._pending[:size]

    def read(self, region, offset, form, time_limit=TIME_LIMIT):
        answer = self.ask(keeping.REGION_READ, keeping.ACCESS.pack(offset, region, struct.calcsize(form)), time_limit=time_limit)
        return answer and struct.unpack(form, answer[keeping.ACCESS.size:])[0]

    def begin_command(self):
        """Begins a command without parameters."""
        for offset, value in ((0x10, 0), (0x14, 0), (0x18, GO | NOP)):
            assert self.ask(keeping.REGION_WRITE, keeping.ACCESS.pack(COMMAND + offset, BAR0, 4) + struct.pack(">I", value)) is not None

    def run_command(self):
        """Runs a command without parameters; returns its status."""
        self.begin_command()
        return await_that("the command's end", lambda: not (control := self.read(BAR0, COMMAND + 0x18, ">I")) & GO and (control,))[0] >> STATUS


class KillsOfWeftd(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-kills-")))
        self.folder.chmod(0o700)
        lab = self.folder / "lab.toml"
        lab.write_text(LAB)
        self.weftd = Daemon(WEFTD, self.folder, self.folder, True)
        self.addCleanup(self.weftd.keeper.close)
        self.addCleanup(self.weftd.end)
        self.weftd.start(lab)

    def ask(self, command, **arguments):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.weftd.control))
            client.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            answer = json.loads(client.makefile("rb").readline())
        self.assertTrue(answer["ok"], answer)
        return answer["result"]

    def test_clients_stay_connected_and_links_keep_their_state_over_10_kills_of_weftd(self):
        """Each client gets a reply to nearly all requests, from its card or like that of a failed one, and its card works after each kill. A link
        that was down stays down. A failure prints the seed of the moments; the environment variable WEFT_SEED sets it."""
        seed = int(os.environ.get("WEFT_SEED") or int.from_bytes(os.urandom(4), "little"))
        moments = random.Random(seed)
        clients = {host: Client(self.folder / f"{host}.sock") for host in HOSTS}
        for client in clients.values():
            client.start()
        self.ask("link.down", link="spare")
        with self.subTest(seed=seed):
            for _ in range(KILLS):
                before = {host: (client.vendors, client.ones) for host, client in clients.items()}
                await_that("reads of all cards", lambda: all(client.vendors > before[host][0] or client.error for host, client in clients.items()))
                for client in clients.values():
                    client.do(Client.run_command)
                time.sleep(moments.uniform(0, 0.1))     # only the moment is random
                os.kill(self.weftd._process.pid, signal.SIGKILL)
                self.assertTrue(self.weftd.ends_soon())
                await_that("answers as of failed cards", lambda: all(client.ones > before[host][1] or client.error for host, client in clients.items()))
                self.assertIn("was killed by SIGKILL and was started again", self.weftd.start_again())
                for host in HOSTS:
                    self.weftd.keeper.pass_on(host)
                self.assertEqual([link["name"] for link in self.ask("fabric.show")["links"] if link["settings"]["state"] == "down"], ["spare/1-s1/3"])
        for client in clients.values():
            client.end()

    def idle_client(self, host):
        """A client whose requests the test sends."""
        client = Client(self.folder / f"{host}.sock")
        self.addCleanup(client.close)
        return client

    def test_random_card_faults_continue_after_a_restart_of_weftd(self):
        client = self.idle_client("a")
        self.ask("card.random_faults", host="a", one_in=1)
        os.kill(self.weftd._process.pid, signal.SIGKILL)
        self.assertTrue(self.weftd.ends_soon())
        self.weftd.start_again()
        self.weftd.keeper.pass_on("a")
        client.begin_command()
        await_that("a fault", lambda: any(self.ask("fabric.show")["hosts"][0]["faults"].values()))

    def test_armed_card_fault_occurs_after_a_restart_of_weftd(self):
        """The fifth command from now on fails. Two commands are run before weftd is killed, so that it is the third one of the next weftd."""
        client = self.idle_client("a")
        self.ask("card.fault", host="a", fault="command-nth", count=5)
        statuses = [client.run_command() for _ in range(2)]
        await_that("the record of the remaining count", lambda: '"count":3,' in (self.folder / STATE).read_text())
        os.kill(self.weftd._process.pid, signal.SIGKILL)
        self.assertTrue(self.weftd.ends_soon())
        self.weftd.start_again()
        self.assertEqual([host["armed"] for host in self.ask("fabric.show")["hosts"][:2]], [{"command-nth": 3}, {}])
        self.weftd.keeper.pass_on("a")
        statuses += [client.run_command() for _ in range(4)]
        self.assertEqual([status != 0 for status in statuses], [False] * 4 + [True, False])

    def test_former_client_is_disconnected_if_another_client_has_connected_to_its_card(self):
        """Another client connects to the card before the former one's connection is passed on. The former one does not wait for replies in vain."""
        client = self.idle_client("a")
        os.kill(self.weftd._process.pid, signal.SIGKILL)
        self.assertTrue(self.weftd.ends_soon())
        self.weftd.start_again()
        other = self.idle_client("a")
        self.weftd.keeper.pass_on("a")
        with self.assertRaises(OSError):
            client.read(CONFIG, 0, "<H")
        self.assertEqual(other.read(CONFIG, 0, "<H"), MELLANOX)

    def test_client_stays_connected_while_weftd_is_replaced(self):
        """It is answered as by a failed card after each, until its connection is passed on. The test prints how long the card was not there."""
        client = Client(self.folder / "a.sock")
        client.start()
        times = []
        for _ in range(KILLS):
            before, begun = client.ones, time.monotonic()
            self.weftd.replace(None)
            await_that("answers as of a failed card", lambda: client.ones > before or client.error)
            self.weftd.keeper.pass_on("a")
            self.assertEqual(client.do(Client.run_command), 0)
            await_that("a read of the card", lambda: client.returned > begun or client.error)
            times.append(client.returned - begun)
        client.end()
        print(f"seconds from the replacement of weftd to a read of the card: median {statistics.median(times):.3f}, {min(times):.3f} to {max(times):.3f}", file=sys.stderr)


if __name__ == "__main__":
    WEFTD = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
