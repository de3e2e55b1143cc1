# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs commands in a guest on another host, for `weft run` over several hosts."""
import json
import struct
import threading
import time

import channel
import serving
import whole
from channel import Closed
from lab import DeadlineExceeded, GuestDied
from lab.errors import LabError, printable
from lab.process import CONSUMED, ERR, EXIT, HEADER, INPUT, OUT, BadFrame, Process, read_frame


class RemoteGuest:
    """A guest of a place, with the methods of a lab.Guest that `weft run` uses."""

    slowness = 1.0      # the limits are those of commands, which the user has given

    def __init__(self, name, place):
        self.name = name
        self.changed = threading.Condition()
        self._place = place
        self._streams = {}      # of commands, by number
        self._failures = {}     # why a command has no status, by number

    @property
    def log(self):
        return self._place.path_of(f"{self.name}.log")

    def console_error(self):
        """Incomplete consoles are reported when the lab ends (Place.incomplete)."""
        return None

    def start_program(self, words, terminal=None, environment=()):
        with self.changed:
            number = len(self._streams) + 1
            self._streams[number] = None
        process = Process(self, number, " ".join(words))
        try:
            stream = self._streams[number] = self._place.streams.open("lab")
            stream.send(json.dumps({"host": self.name, "words": list(words), "terminal": terminal, "environment": list(environment)}).encode() + b"\n")
        except Closed:
            raise self._place.error() from None
        threading.Thread(target=self._read, args=(number, stream, process), daemon=True).start()
        return process

    def spawn(self, command):
        process = self.start_program(["bash", "-c", command])
        process.give(b"")
        return process

    def put(self, path, data, timeout=60):
        data = data if isinstance(data, bytes) else data.encode(errors="surrogateescape")
        process = self.start_program(["bash", "-c", f"cat >{path}"])
        sent = 0
        while sent < len(data):
            self.wait_for_event("space for a file", lambda: process.status is not None or process.window.space() > 0, timeout)
            if process.status is not None:
                break
            piece = data[sent:sent + min(process.window.space(), channel.PIECE)]
            process.give(piece)
            sent += len(piece)
        process.give(b"")
        self.wait_for_event(f"the end of writing {path}", lambda: process.status is not None, timeout)
        if process.status != 0:
            raise LabError(f"{self.name}: {path} could not be written: {process.err.strip()}")

    def send(self, number, kind, data):
        try:
            self._streams[number].send(HEADER.pack(len(data), 0, kind) + data)
        except Closed:
            if kind == INPUT:
                raise GuestDied(f"{self.name}: its host is gone") from None

    def wait_for_event(self, what, condition, timeout):
        deadline = time.monotonic() + timeout
        with self.changed:
            while not condition():
                if self._failures:
                    failure = next(iter(self._failures.values()))
                    raise failure if isinstance(failure, Exception) else GuestDied(failure)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"{self.name}: waited {timeout:g} s for {what}")
                self.changed.wait(min(left, 0.5))

    def _read(self, number, stream, process):
        """Reads the frames of a command. Runs on a thread of its own."""
        failure = None
        try:
            reader = whole.Reader(stream)
            while frame := read_frame(reader):
                _, kind, data = frame
                with self.changed:
                    if kind in (OUT, ERR):
                        process.take(kind, data)
                    elif kind == CONSUMED:
                        process.window.take(struct.unpack("<I", data)[0])
                    elif kind == EXIT:
                        (status,) = struct.unpack("<I", data)
                        if status > 255:
                            raise BadFrame(f"the exit status {status}")
                        process.status = status
                    elif kind == serving.FAILED:
                        failure = printable(data.decode(errors="replace"))
                    else:
                        raise BadFrame(f"a frame of kind {kind}")
                    self.changed.notify_all()
                    while process.is_full() and not self._place.failure:
                        self.changed.wait(0.5)
                if process.status is not None or failure:
                    break
        except BadFrame as error:
            failure = LabError(f"{self._place.label()}: it sent {error}")
        if process.status is None:
            failure = failure or self._place.error()
        stream.close()
        with self.changed:
            if failure:
                self._failures[number] = failure
            self.changed.notify_all()
