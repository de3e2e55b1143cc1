# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Keeps the connections between QEMU and its cards open while weftd is replaced. QEMU does not connect again, and often aborts if a connection
closes.

When QEMU connects to a card, weftd passes a copy of the connection to the session (the program that has started weftd), with the messages that set up
the connection (weftd(1), "RESTART"). While there is no weftd, the session answers QEMU like a card that has failed: reads return all ones, and writes
have no effect. The next weftd gets the connection and those messages.
"""
import array
import collections
import contextlib
import itertools
import os
import select
import socket
import struct
import threading

MOST_DESCRIPTORS = 16
REST_SECONDS = 5        # time limit in seconds for the rest of a message when weftd is about to take over
LONGEST_RECORD = 16 << 10
LONGEST_MESSAGE = 2 << 20
MOST_MAPS = 256         # limit of mappings per card; weftd itself accepts at most 64
# The protocol (tools/bus/vfio-user/protocol.hpp).
HEADER = struct.Struct("<HHIII")
VERSION, DMA_MAP, DMA_UNMAP, SET_IRQS, REGION_READ, REGION_WRITE, RESET, REGION_WRITE_MULTI = 1, 2, 3, 8, 9, 10, 13, 15
REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
MAP = struct.Struct("<IIQQQ")
UNMAP = struct.Struct("<IIQQ")
UNMAP_ALL = 2
IRQS = struct.Struct("<IIIII")
EVENTFD, TRIGGER = 1 << 2, 1 << 5
INTX = 0
ACCESS = struct.Struct("<QII")
ENOTSUP = 95


def _receive(connection, size):
    """Returns (bytes, descriptors) of one read."""
    numbers = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(size, socket.CMSG_SPACE(MOST_DESCRIPTORS * numbers.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, part in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(part[:len(part) - len(part) % numbers.itemsize])
    return data, list(numbers)


def _close(numbers):
    for number in numbers:
        os.close(number)


class Card:
    """A guest's connection to its card: the socket, and the messages with which a server that continues the connection must begin."""

    def __init__(self, descriptor, identifier=b""):
        self.identifier = identifier    # that weftd has given the connection; an earlier weftd gives none
        self._socket = socket.socket(fileno=descriptor)
        self._version = None
        self._maps = {}         # by address: (size, message, descriptors)
        self._intx = None       # (message, descriptors)
        self._dead = None       # the thread that answers in place of weftd, and the socket that stops it
        self._wake = None
        self._lock = threading.RLock()      # held while the connection is passed on

    def close(self):
        with self._lock:
            self.stop()
            self._socket.close()
            for _, _, descriptors in self._maps.values():
                _close(descriptors)
            if self._intx:
                _close(self._intx[1])

    def note(self, message, descriptors):
        """Records a message of the guest's QEMU that sets up its session, or removes the record of one that is undone. Takes ownership of the
        descriptors."""
        _, command, *_ = HEADER.unpack_from(message)
        body = message[HEADER.size:]
        if command == VERSION:
            self._version = message
        elif command == DMA_MAP and len(body) >= MAP.size:
            _, _, _, address, size = MAP.unpack_from(body)
            _close(self._maps.pop(address, (0, b"", []))[2])
            if len(self._maps) < MOST_MAPS:
                self._maps[address] = (size, message, descriptors)
                return
        elif command == DMA_UNMAP and len(body) >= UNMAP.size:
            _, flags, address, size = UNMAP.unpack_from(body)
            gone = [each for each, (length, *_) in self._maps.items() if flags & UNMAP_ALL or address <= each and each + length <= address + size]
            for each in gone:
                _close(self._maps.pop(each)[2])
        elif command == SET_IRQS and len(body) >= IRQS.size:
            _, flags, index, _, count = IRQS.unpack_from(body)
            if index == INTX and flags & TRIGGER and (descriptors or not count):
                if self._intx:
                    _close(self._intx[1])
                self._intx = (message, descriptors) if descriptors else None
                return
        _close(descriptors)

    def pass_on(self, name, keeper):
        """Passes the connection to the weftd at the other end of the keeper's socket. OSError: weftd has exited."""
        def send(verb, message, descriptors):
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
            keeper.sendmsg([f"{verb} {name}\n".encode() + message], rights)

        with self._lock:
            self.stop()
            version = [(self._version, [])] if self._version else []    # there is none if weftd exited before it was sent
            try:
                for message, descriptors in [*version, *((message, held) for _, message, held in self._maps.values()), *([self._intx] if self._intx else [])]:
                    send("restore", message, descriptors)
                send("adopt", self.identifier, [self._socket.fileno()])
            except OSError:
                self.stand_in()
                raise

    def hung_up(self):
        """Returns whether the guest's QEMU has closed the connection."""
        poller = select.poll()
        poller.register(self._socket, select.POLLRDHUP)
        return bool(poller.poll(0))

    # -- answers in place of weftd --------------------------------------------------------------

    def stand_in(self):
        """Starts to answer like a card that has failed."""
        with self._lock:
            if not self._dead:
                wake = os.eventfd(0)
                thread = threading.Thread(target=self._answer, args=(wake,), daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    os.close(wake)
                    raise
                self._wake, self._dead = wake, thread

    def stands_in(self):
        return self._dead is not None

    def stop(self):
        if self._dead:
            os.eventfd_write(self._wake, 1)
            self._dead.join()
            os.close(self._wake)
            self._dead = None

    def _answer(self, wake):
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        poller.register(wake, select.POLLIN)
        with contextlib.suppress(OSError, struct.error):
            while not any(number == wake for number, _ in poller.poll()):
                if not self._answer_one(wake):
                    break

    def _answer_one(self, wake):
        """Answers a message. Returns False if there are no more, or if the thread must stop and the rest of the message does not arrive."""
        descriptors = []
        try:
            message = self._read(HEADER.size, descriptors, wake)
            if not message:
                return False
            number, command, size, flags, _ = HEADER.unpack(message)
            if not HEADER.size <= size <= LONGEST_MESSAGE:
                return False
            body = self._read(size - HEADER.size, descriptors, wake)
            if len(body) < size - HEADER.size:
                return False
            answer, error = self._answer_to(command, body)
            taken, descriptors = descriptors, []
            self.note(message + body, taken)
        finally:
            _close(descriptors)
        if not flags & NO_REPLY:
            self._socket.sendall(HEADER.pack(number, command, HEADER.size + len(answer), REPLY | (ERROR if error else 0), error) + answer)
        return True

    def _read(self, size, descriptors, wake):
        """Returns this many bytes, and appends received descriptors to the list. Returns b"" if the connection was closed, or if the thread must
        stop."""
        either, rest = select.poll(), select.poll()
        for poller in (either, rest):
            poller.register(self._socket, select.POLLIN)
        either.register(wake, select.POLLIN)
        data = b""
        while len(data) < size:
            # A message that has begun is read to its end, because the next weftd could not interpret the rest. There is a time limit for clients that
            # do not send it.
            either.poll()
            if not rest.poll(REST_SECONDS * 1000):
                return b""
            piece, more = _receive(self._socket, size - len(data))
            if not piece:
                return b""
            data += piece
            descriptors += more
        return data

    @staticmethod
    def _answer_to(command, body):
        """Returns (the data after the header, the number of the error)."""
        if command == REGION_READ:
            _, _, count = ACCESS.unpack_from(body)
            return body[:ACCESS.size] + b"\xff" * min(count, LONGEST_MESSAGE), 0
        if command == REGION_WRITE:
            return body[:ACCESS.size], 0
        if command == REGION_WRITE_MULTI:
            return body[:8], 0
        if command == DMA_UNMAP:
            return body[:UNMAP.size], 0
        return b"", 0 if command in (DMA_MAP, SET_IRQS, RESET) else ENOTSUP


class Keeper:
    """Keeps all connections of a lab."""

    def __init__(self):
        self._cards = collections.defaultdict(dict)     # keyed by host, and by a number for each connection; the oldest first
        self._count = itertools.count()
        self._lock = threading.Lock()
        self._socket = None
        self._reader = None

    def open(self):
        """Creates a socket for a weftd that will be started; returns its end."""
        if self._socket:
            self._socket.close()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._reader = threading.Thread(target=self._read, args=(self._socket,), daemon=True)
        self._reader.start()
        return theirs

    def stand_in(self):
        """Answers QEMU in place of weftd after weftd has exited."""
        self._reader.join()     # until everything that weftd has passed on has been read
        with self._lock:
            for cards in self._cards.values():
                # A card has one client. Another program may have connected to weftd before the guest's connection was passed on.
                living = [number for number, card in cards.items() if not card.hung_up()]
                for number in list(cards):
                    if number not in living[:1]:
                        cards.pop(number).close()
                for key, card in list(cards.items()):
                    try:
                        card.stand_in()
                    except (OSError, RuntimeError):
                        # There is no descriptor or thread for it. The guest loses this card and keeps the others.
                        cards.pop(key).close()

    def close(self):
        with self._lock:
            for cards in self._cards.values():
                for card in cards.values():
                    card.close()
            self._cards.clear()
        if self._socket:
            self._socket.close()

    def has(self, host):
        """Returns whether there is a connection to the host's card."""
        with self._lock:
            return bool(self._cards.get(host))

    def forget(self, host):
        """Closes the connections of a host whose guest has exited."""
        with self._lock:
            for card in self._cards.pop(host, {}).values():
                card.close()

    def pass_on(self, host):
        """Passes a guest's connection to the running weftd, unless weftd serves it already. OSError: weftd has exited."""
        with self._lock:
            waiting = [card for card in self._cards[host].values() if card.stands_in()]
            keeper = self._socket
        # The lock is not held, because weftd may wait until the reader has taken another record.
        for card in waiting:
            card.pass_on(host, keeper)

    def _read(self, connection):
        with contextlib.suppress(OSError):
            while True:
                try:
                    record, descriptors = _receive(connection, LONGEST_RECORD)
                except ConnectionResetError:
                    continue    # weftd was killed before it had read all records. Its own records follow after this error.
                if not record:
                    break
                line, _, message = record.partition(b"\n")
                verb, _, host = line.decode(errors="replace").partition(" ")
                self._take(verb, host, message, descriptors)

    def _take(self, verb, host, message, descriptors):
        with self._lock:
            cards = self._cards[host]
            served = [key for key, card in cards.items() if not card.stands_in()]
            if verb == "connected" and len(descriptors) == 1:
                # A host that was replaced has another connection, and nothing reports the end of the former one.
                for key in [key for key, card in cards.items() if message and card.identifier == message or key in served and card.hung_up()]:
                    cards.pop(key).close()
                cards[next(self._count)] = Card(descriptors[0], message)
            elif verb == "received" and served and len(message) >= HEADER.size:
                cards[served[-1]].note(message, descriptors)
            else:
                _close(descriptors)
                if verb == "gone":
                    # Without an ID it is a client that this weftd serves, and not one that waits for being passed on.
                    for key in [key for key, card in cards.items() if card.identifier == message] if message else served:
                        cards.pop(key).close()
