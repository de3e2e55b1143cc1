#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that weft-session, which starts weftd, answers QEMU after weftd has exited, and passes QEMU's connection on to the next weftd."""
import array
import errno
import os
import pathlib
import select
import socket
import sys
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import daemon  # noqa: E402
import keeping  # noqa: E402
from keeping import ACCESS, HEADER, IRQS, MAP, UNMAP, Keeper  # noqa: E402


def message(command, body=b"", number=7, flags=0):
    return HEADER.pack(number, command, HEADER.size + len(body), flags, 0) + body


def mapping(address, size=0x1000):
    return message(keeping.DMA_MAP, MAP.pack(MAP.size, 3, 0, address, size))


def unmapping(address, size, flags=0):
    return message(keeping.DMA_UNMAP, UNMAP.pack(UNMAP.size, flags, address, size))


def irqs(index, count):
    return message(keeping.SET_IRQS, IRQS.pack(IRQS.size, keeping.EVENTFD | keeping.TRIGGER, index, 0, count))


VERSION = message(keeping.VERSION, b"\0\0\1\0{}\0")


class ConnectionKeeper(unittest.TestCase):
    def setUp(self):
        self.keeper = Keeper()
        self.weftd = self.enterContext(self.keeper.open())
        self.qemu, theirs = socket.socketpair()
        self.enterContext(self.qemu)
        self.qemu.settimeout(60)
        self.notify("connected", [theirs.fileno()], b"1")
        theirs.close()
        self.addCleanup(self.end)

    def end(self):
        self.weftd.close()
        self.keeper.stand_in()
        self.keeper.close()

    def notify(self, verb, descriptors=(), body=b""):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.weftd.sendmsg([f"{verb} node1\n".encode() + body], rights)

    def memory(self):
        number = os.memfd_create("guest")
        self.addCleanup(os.close, number)
        return number

    def die(self):
        """Closes weftd's connection, as when weftd exits."""
        self.weftd.close()
        self.keeper.stand_in()

    def ask(self, request):
        self.qemu.sendall(request)
        return self.answer()

    def answer(self):
        header = self.qemu.recv(HEADER.size, socket.MSG_WAITALL)
        number, command, size, flags, error = HEADER.unpack(header)
        body = self.qemu.recv(size - HEADER.size, socket.MSG_WAITALL) if size > HEADER.size else b""
        return number, command, flags, error, body

    def passed_on(self):
        """Returns what the next weftd receives: (records, the number of descriptors of each)."""
        theirs = self.enterContext(self.keeper.open())
        theirs.settimeout(60)
        self.keeper.pass_on("node1")
        records = []
        while not records or not records[-1][0].startswith(b"adopt"):
            record, descriptors = keeping._receive(theirs, keeping.LONGEST_RECORD)
            keeping._close(descriptors)
            records.append((record, len(descriptors)))
        theirs.close()
        return records

    def test_qemu_gets_replies_after_weftd_has_exited(self):
        self.die()
        self.qemu.sendall(message(keeping.RESET))
        self.assertEqual(self.answer(), (7, keeping.RESET, keeping.REPLY, 0, b""))

    def test_reads_return_all_ones_and_writes_are_acknowledged_while_weftd_is_not_running(self):
        self.die()
        access = ACCESS.pack(0x10, 0, 4)
        self.assertEqual(self.ask(message(keeping.REGION_READ, access)), (7, keeping.REGION_READ, keeping.REPLY, 0, access + b"\xff" * 4))
        self.assertEqual(self.ask(message(keeping.REGION_WRITE, access + b"data")), (7, keeping.REGION_WRITE, keeping.REPLY, 0, access))
        # A posted write has no reply; the next reply belongs to the next request.
        self.qemu.sendall(message(keeping.REGION_WRITE, access + b"data", 8, keeping.NO_REPLY))
        self.assertEqual(self.ask(message(keeping.RESET, number=9))[0], 9)
        self.assertEqual(self.ask(message(99))[2:], (keeping.REPLY | keeping.ERROR, keeping.ENOTSUP, b""))

    def test_keeper_answers_vfio_user_requests_that_arrive_in_pieces_after_weftd_has_exited(self):
        self.die()
        request = message(keeping.REGION_READ, ACCESS.pack(0, 0, 8))
        for position in range(len(request)):
            self.qemu.sendall(request[position:position + 1])
        self.assertEqual(self.answer()[4][-8:], b"\xff" * 8)

    def test_next_weftd_gets_the_connection_dma_mappings_and_intx_of_the_guest(self):
        """The next weftd does not get memory that was unmapped, before or after weftd exited, nor MSI-X, which the driver sets up again."""
        self.notify("received", body=VERSION)
        for address in (0x0, 0x1000, 0x2000):
            self.notify("received", [self.memory()], mapping(address))
        self.notify("received", body=unmapping(0x1000, 0x1000))
        self.notify("received", [self.memory()], irqs(keeping.INTX, 1))
        self.notify("received", [self.memory()] * 3, irqs(2, 3))
        self.die()
        self.assertEqual(self.ask(unmapping(0x2000, 0x1000))[3], 0)
        self.qemu.sendmsg([mapping(0x8000)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.memory()]))])
        self.assertEqual(self.answer()[3], 0)
        self.assertEqual(self.passed_on(), [(b"restore node1\n" + VERSION, 0), (b"restore node1\n" + mapping(0), 1),
                                            (b"restore node1\n" + mapping(0x8000), 1), (b"restore node1\n" + irqs(keeping.INTX, 1), 1), (b"adopt node1\n1", 1)])

    def test_file_descriptors_of_removed_dma_mappings_are_closed(self):
        """Many mappings and unmappings leave no descriptor open, and neither does a guest that has disconnected."""
        self.notify("received", body=VERSION)
        before = len(os.listdir("/proc/self/fd"))
        memory = self.memory()
        for _ in range(100):
            self.notify("received", [memory], mapping(0))
            self.notify("received", [memory], irqs(keeping.INTX, 1))
            self.notify("received", body=unmapping(0, 0, keeping.UNMAP_ALL))
            self.notify("received", [memory], b"short")
            self.notify("nonsense", [memory])
        self.notify("gone", body=b"1")
        self.die()
        # The descriptors of the connection and of weftd's socket are closed; the one of the memory is new.
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)
        self.assertFalse(self.keeper.has("node1"))

    def test_no_reply_is_sent_after_an_invalid_message_from_qemu(self):
        self.die()
        self.qemu.sendall(HEADER.pack(1, keeping.RESET, 3, 0, 0))
        thread = next(iter(self.keeper._cards["node1"].values()))._dead
        thread.join(60)
        self.assertFalse(thread.is_alive())

    def other(self, identifier):
        """Connects another program to the card; returns the program's end of the connection."""
        program, theirs = socket.socketpair()
        self.enterContext(program)
        program.settimeout(60)
        self.notify("connected", [theirs.fileno()], identifier)
        theirs.close()
        return program

    def test_keeper_closes_connections_of_replaced_cards_and_stopped_guests(self):
        """A guest whose card was replaced has a new connection. weftd does not report the end of the former one."""
        first, second = self.other(b"2"), self.other(b"3")
        self.qemu.close()
        first.close()
        third = self.other(b"4")
        daemon.await_that("the former connections to be closed",
                          lambda: [card.identifier for card in self.keeper._cards["node1"].values()] == [b"3", b"4"])
        self.keeper.forget("node1")
        self.assertFalse(self.keeper.has("node1"))
        self.assertEqual((second.recv(1), third.recv(1)), (b"", b""))

    def passed(self):
        """Restarts weftd and passes the guest's connection on to it."""
        self.die()
        self.weftd = self.enterContext(self.keeper.open())
        self.weftd.settimeout(60)
        self.keeper.pass_on("node1")
        record, descriptors = keeping._receive(self.weftd, keeping.LONGEST_RECORD)
        keeping._close(descriptors)
        self.assertEqual(record, b"adopt node1\n1")

    def assert_kept(self):
        """Verifies that only the guest's connection is kept after weftd has exited."""
        self.die()
        self.assertEqual(self.ask(message(keeping.RESET)), (7, keeping.RESET, keeping.REPLY, 0, b""))
        self.assertEqual(self.passed_on()[-1], (b"adopt node1\n1", 1))

    def test_guest_stays_connected_if_another_client_disconnects(self):
        """Another program is connected, and disconnects, before the guest's connection is passed on, and weftd's records about it are read later."""
        self.notify("received", body=VERSION)
        self.die()
        self.weftd = self.enterContext(self.keeper.open())
        other = self.other(b"2")
        self.notify("received", body=b"x" * HEADER.size)
        self.keeper.pass_on("node1")
        self.notify("gone", body=b"2")
        self.notify("received", [self.memory()], mapping(0))
        self.assertEqual(other.recv(1), b"")
        self.die()
        self.assertEqual(self.passed_on(), [(b"restore node1\n" + VERSION, 0), (b"restore node1\n" + mapping(0), 1), (b"adopt node1\n1", 1)])

    def test_second_client_of_a_card_stays_connected_after_weftd_has_disconnected_the_guest(self):
        self.passed()
        other = self.other(b"2")
        self.notify("gone", body=b"1")
        self.assertEqual(self.qemu.recv(1), b"")
        self.die()
        other.sendall(message(keeping.RESET))
        self.assertEqual(other.recv(HEADER.size)[:2], message(keeping.RESET)[:2])

    def test_exit_of_weftd_disconnects_clients_that_connected_after_the_guest(self):
        """The next weftd would refuse the client."""
        self.die()
        self.weftd = self.enterContext(self.keeper.open())
        other = self.other(b"2")
        self.die()
        self.assertEqual(other.recv(1), b"")
        self.assert_kept()

    def test_connection_closed_by_the_guest_is_not_passed_to_the_next_weftd(self):
        """A guest that is started again while its former connection is kept."""
        self.die()
        self.qemu.close()
        self.weftd = self.enterContext(self.keeper.open())
        self.qemu = self.other(b"2")
        self.die()
        self.assertEqual(self.ask(message(keeping.RESET))[0], 7)
        self.assertEqual(self.passed_on()[-1], (b"adopt node1\n2", 1))

    def test_keeper_accepts_connection_records_of_an_older_weftd_version(self):
        """The earlier weftd sends no IDs. A record about an unknown connection does nothing."""
        self.notify("gone", body=b"3")
        self.passed()
        self.notify("gone")
        self.assertEqual(self.qemu.recv(1), b"")
        self.qemu = self.other(b"")
        self.die()
        self.assertEqual(self.ask(message(keeping.RESET))[0], 7)

    def test_guest_stays_connected_if_weftd_reports_a_disconnect_without_a_client_id(self):
        """A program connects to the card, and disconnects, before the guest's connection is passed on to a weftd that sends no IDs."""
        self.notify("gone", body=b"1")
        self.qemu = self.other(b"")
        self.die()
        self.weftd = self.enterContext(self.keeper.open())
        other = self.other(b"")
        self.notify("gone")
        self.assertEqual(other.recv(1), b"")
        self.assertEqual(self.ask(message(keeping.RESET))[0], 7)
        self.die()
        self.assertEqual(self.passed_on()[-1], (b"adopt node1\n", 1))

    def test_connection_with_an_incomplete_message_is_passed_to_the_next_weftd(self):
        """QEMU has sent a part of a message. The next weftd will read the rest and refuse the message, but no request waits for its reply."""
        self.die()
        self.qemu.sendall(message(keeping.RESET)[:5])
        daemon.await_that("the part to be read", lambda: not select.select([next(iter(self.keeper._cards["node1"].values()))._socket], [], [], 0)[0])
        self.assertEqual(self.passed_on()[-1], (b"adopt node1\n1", 1))

    def test_shortage_of_file_descriptors_disconnects_the_guest(self):
        with unittest.mock.patch.object(os, "eventfd", side_effect=OSError(errno.EMFILE, "Too many open files")):
            self.die()
        self.assertEqual(self.qemu.recv(1), b"")
        self.assertFalse(self.keeper.has("node1"))

    def test_keeper_reads_all_records_that_weftd_sent_before_it_was_killed(self):
        """The records are read even if weftd had not read all records that were sent to it."""
        self.notify("received", body=VERSION)
        self.die()
        self.weftd = self.enterContext(self.keeper.open())
        self.keeper.pass_on("node1")
        memory = self.memory()
        for number in range(100):
            self.notify("received", [memory], mapping(number * 0x1000))
        self.die()
        self.assertEqual(len(self.passed_on()), 102)

    def test_connection_that_weftd_already_serves_is_not_passed_to_weftd_again(self):
        self.passed()
        self.keeper.pass_on("node1")
        self.weftd.setblocking(False)
        with self.assertRaises(BlockingIOError):
            self.weftd.recv(1)
        self.assert_kept()

    def test_keeper_replies_to_requests_if_the_next_weftd_cannot_receive_the_connection(self):
        self.die()
        self.keeper.open().close()
        with self.assertRaises(OSError):
            self.keeper.pass_on("node1")
        self.assertEqual(self.ask(message(keeping.RESET))[0], 7)


if __name__ == "__main__":
    unittest.main()
