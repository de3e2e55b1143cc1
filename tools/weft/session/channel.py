# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Exchanges messages and streams of bytes between two programs: the program that starts a lab over several hosts (places.py), and the program that
runs the part of the lab on one of these hosts, a place (remote_place.py).

A message is one line with a JSON object. A message that would be longer than the sender's limit is sent as several lines {"part": TEXT, "more":
BOOLEAN}, whose texts form its line. Each stream carries bytes in both directions. Either side may send these messages for a stream:

    {"open": NUMBER, "socket": NAME}      opens a stream to a socket of the place, or, from a place, to the control socket of the lab ("whole")
    {"data": NUMBER, "bytes": BASE64}     carries bytes, of which at most WINDOW may be unconsumed
    {"taken": NUMBER, "count": BYTES}     reports that the receiver has consumed these bytes
    {"end": NUMBER}                       ends the data in this direction
    {"close": NUMBER}                     closes the stream
"""
import base64
import binascii
import contextlib
import json
import queue
import socket
import threading

LONGEST_LINE = 64 << 10         # bytes, also the limit of a sender that has no other
LONGEST_MESSAGE = 8 << 20
WINDOW = 256 << 10
MOST_STREAMS = 256
REVERSE = 1 << 52               # the first number of the streams that a place opens
PIECE = 24 << 10                # bytes of one data message
MOST_QUEUED = 4096              # messages that wait for a writer; streams are bounded by their windows


class Violation(Exception):
    """The other side sent something that the protocol does not permit."""


class Closed(Exception):
    """The other side, or the stream, is gone."""


def encode(message, longest=LONGEST_LINE):
    """Returns the lines of a message, as bytes."""
    line = json.dumps(message).encode()
    if len(line) < longest:
        return line + b"\n"
    # A character of the text takes at most two bytes in the outer one, because JSON escapes quotes and backslashes.
    size = (longest - 40) // 2
    pieces = [line[begin:begin + size].decode() for begin in range(0, len(line), size)]
    return b"".join(json.dumps({"part": piece, "more": number < len(pieces)}).encode() + b"\n" for number, piece in enumerate(pieces, 1))


class Decoder:
    """Puts the lines of one sender together again."""

    def __init__(self):
        self._parts = []
        self._size = 0

    def decode(self, line):
        """Returns the message that a line completes, or None. Raises Violation."""
        message = self._object(line)
        if "part" not in message:
            if self._parts:
                raise Violation("a message within the parts of another one")
            return message
        text = message["part"]
        if not isinstance(text, str) or not text or not isinstance(message.get("more"), bool):
            raise Violation("a part that is not text")
        self._parts.append(text)
        self._size += len(text) + 1     # its place in the list
        if self._size > LONGEST_MESSAGE:
            raise Violation(f"a message of more than {LONGEST_MESSAGE} bytes")
        if message["more"]:
            return None
        text = "".join(self._parts)
        self._parts, self._size = [], 0
        return self._object(text)

    @staticmethod
    def _object(line):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise Violation("a line that is not JSON") from None
        if not isinstance(message, dict):
            raise Violation("a line that is not a JSON object")
        return message


def text_of(message, name, most):
    """Returns a field with text. Raises Violation if it is missing, longer, or something else."""
    text = message.get(name)
    if not isinstance(text, str) or len(text) > most:
        raise Violation(f"the field {name} is not text of at most {most} characters")
    return text


def number_of(message, name, least, most):
    number = message.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise Violation(f"the field {name} is not a number from {least} to {most}")
    return number


def bytes_of(message, name, most):
    try:
        data = base64.b64decode(text_of(message, name, (most + 2) // 3 * 4), validate=True)
    except binascii.Error:
        raise Violation(f"the field {name} is not base64") from None
    if len(data) > most:
        raise Violation(f"the field {name} has more than {most} bytes")
    return data


def to_text(data):
    return base64.b64encode(data).decode()


class Writer:
    """Writes messages on a thread of its own, so that a reader that is slow or hung delays no other thread."""

    def __init__(self, file, longest=LONGEST_LINE):
        self._file = file
        self._longest = longest
        self._queue = queue.Queue(MOST_QUEUED)
        self._closed = False
        threading.Thread(target=self._write, daemon=True).start()

    def send(self, message):
        """Raises Closed if the reader is gone, or has not read for so long that the queue is full."""
        if self._closed:
            raise Closed
        try:
            self._queue.put(message, timeout=60)
        except queue.Full:
            raise Closed from None

    def limit(self, longest):
        self._longest = longest

    def finish(self, seconds):
        """Writes what is waiting, then closes the file. Returns after at most this time."""
        done = threading.Event()
        with contextlib.suppress(Closed, queue.Full):
            self._queue.put_nowait(done)
            done.wait(seconds)

    def _write(self):
        try:
            while not isinstance(message := self._queue.get(), threading.Event):
                self._file.write(encode(message, self._longest))
                self._file.flush()
        except (OSError, ValueError):
            message = None
        self._closed = True
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        while True:     # a sender may wait for a place in the queue
            if isinstance(message, threading.Event):
                message.set()
            message = self._queue.get()


class Stream:
    """One stream. Any thread may use it."""

    def __init__(self, streams, number):
        self._streams = streams
        self.number = number
        self._changed = threading.Condition()
        self._unread = bytearray()
        self._in_flight = 0
        self._ended = False     # by the other side
        self._gone = False

    def send(self, data):
        """Waits while the other side has too much that it has not consumed. Raises Closed."""
        for begin in range(0, len(data), PIECE):
            piece = data[begin:begin + PIECE]
            with self._changed:
                self._changed.wait_for(lambda piece=piece: self._gone or self._in_flight + len(piece) <= WINDOW)
                if self._gone:
                    raise Closed
                self._in_flight += len(piece)
            self._streams.send({"data": self.number, "bytes": to_text(piece)})

    def end(self):
        """Sends no more data."""
        with contextlib.suppress(Closed):
            self._streams.send({"end": self.number})

    def receive(self, size=PIECE):
        """Waits for data, and returns some; b"" at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._unread or self._ended or self._gone)
            data = bytes(self._unread[:size])
            del self._unread[:size]
            gone = self._gone
        if data and not gone:
            with contextlib.suppress(Closed):
                self._streams.send({"taken": self.number, "count": len(data)})
        return data

    def close(self):
        with self._changed:
            if self._gone:
                return
        self._streams.forget(self)
        with contextlib.suppress(Closed):
            self._streams.send({"close": self.number})
        self.take_close()

    # -- called for messages of the other side --------------------------------------------------

    def take_data(self, data):
        with self._changed:
            if self._ended or len(self._unread) + len(data) > WINDOW:
                raise Violation("data beyond the window of a stream")
            self._unread += data
            self._changed.notify_all()

    def take_count(self, count):
        with self._changed:
            if count > self._in_flight:
                raise Violation("more data consumed than sent")
            self._in_flight -= count
            self._changed.notify_all()

    def take_end(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take_close(self):
        with self._changed:
            self._gone = self._ended = True
            self._changed.notify_all()


class Streams:
    """The streams over one connection. send(message) may raise Closed."""

    def __init__(self, send, accept=None, first=1, accepted=1):
        """accept(stream, name): called on a new thread when the other side opens a stream. first, accepted: the first numbers of the streams that this side
        and the other one open."""
        self.send = send
        self._accept = accept
        self._accepted = accepted
        self._streams = {}
        self._next = first
        self._broken = False
        self._lock = threading.Lock()

    def open(self, name):
        with self._lock:
            if self._broken or len(self._streams) >= MOST_STREAMS:
                raise Closed
            number, self._next = self._next, self._next + 1
            stream = self._streams[number] = Stream(self, number)
        self.send({"open": number, "socket": name})
        return stream

    def forget(self, stream):
        with self._lock:
            self._streams.pop(stream.number, None)

    def take(self, message):
        """Handles a message if it belongs to a stream; returns whether it does. Raises Violation."""
        for verb in ("data", "taken", "end", "close", "open"):
            if verb in message:
                number = number_of(message, verb, 1, 1 << 53)
                break
        else:
            return False
        if verb == "open":
            self._take_open(number, text_of(message, "socket", 64))
            return True
        with self._lock:
            stream = self._streams.get(number)
        data = bytes_of(message, "bytes", PIECE) if verb == "data" else b""
        count = number_of(message, "count", 1, WINDOW) if verb == "taken" else 0
        if not stream:
            return True     # this side has closed it
        if verb == "data":
            stream.take_data(data)
        elif verb == "taken":
            stream.take_count(count)
        elif verb == "end":
            stream.take_end()
        else:
            self.forget(stream)
            stream.take_close()
        return True

    def _take_open(self, number, name):
        if not self._accept or number < self._accepted:
            raise Violation("a stream that this side must not open")
        with self._lock:
            if number in self._streams:
                raise Violation("a stream that is open already")
            if len(self._streams) >= MOST_STREAMS:
                raise Violation("too many streams")
            stream = self._streams[number] = Stream(self, number)
        threading.Thread(target=self._accept, args=(stream, name), daemon=True).start()

    def break_all(self):
        """The connection is gone."""
        with self._lock:
            self._broken = True
            streams = list(self._streams.values())
            self._streams.clear()
        for stream in streams:
            stream.take_close()


def join(stream, connection):
    """Passes bytes on between a stream and a socket until both directions have ended or one side is gone; then closes the stream."""
    def send():
        with contextlib.suppress(OSError, Closed):
            while data := connection.recv(PIECE):
                stream.send(data)
            stream.end()
            return
        stream.close()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    with contextlib.suppress(OSError):
        while data := stream.receive():
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    # The socket's owner may still send although the other side has ended, as after `shutdown(SHUT_WR)`.
    sender.join()
    stream.close()
