# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Exchanges messages with the part of a lab on another host, which remote_place.py runs: its state, its reports, and copies of its logs.

Everything that a place sends is bounded and checked, because other people may control its host.
"""
import contextlib
import errno
import json
import os
import threading
import time

import channel
import hosts_file
import whole
from channel import Closed, Streams, Violation
from lab.errors import LabError, in_one_line, printable
from remote_place import MOST_INCOMPLETE, SILENCE

MOST_BANNER = 200          # lines before the first message, such as those that a login script prints
LONGEST_NOTE = 4 << 10     # characters of a message about an event, or about a log
MOST_ANSWERS = 1 << 20     # bytes of all answers to a request
LONGEST_TEXT = 64 << 10    # characters of a message for users
MOST_ANSWER = 1 << 20      # bytes of a line of an answer
MOST_COPIED = 512 << 20    # bytes of a place's logs
MOST_FETCHED = 16 << 30    # bytes of a file that this side has requested
MOST_FILES = 2048
FETCH_TIMEOUT = 60         # seconds without a part of a file that was requested


def in_line(text):
    """Returns a text without line feeds."""
    return " ".join(text.split("\n"))


class Place:
    """One place. Its messages arrive on a thread of the starter; `changed` is notified after each."""

    def __init__(self, number, plan, host, starter, changed, report, note, logs):
        self.number = number
        self.plan = plan
        self.name = plan.name
        self.host = host
        self.port = None
        self.address = None
        self.remote_logs = ""       # the directory of its logs on its host
        self.guests = None          # names, after weftd serves the place
        self.up = False
        self.hello = None
        self.failure = None         # why it has failed
        self.failed_at = 0.0
        self.failed_while_ending = False
        self.ending = False         # it was requested to end
        self.ended = False          # it has ended as requested
        self.gone = False           # its program has exited
        self.incomplete = []
        self._starter = starter
        self._changed = changed
        self._report = report
        self._note = note
        self._logs = logs
        self._decoder = channel.Decoder()
        self._banner = 0
        self._last = time.monotonic()
        self._copied = 0
        self._files = {}            # size of each copied file, by name
        self._fetching = threading.Lock()   # held during a fetch
        self._requested = None      # the name of the file that is being fetched
        self._limit = MOST_FETCHED  # of its bytes
        self._abandoned = set()     # names of files that were requested, and did not arrive in time
        self._piece_at = 0.0        # time of the last part of the requested file
        self._fetched = False       # all of it has arrived
        self._size = None           # its size then; None: there is no such file
        self.topology = None        # of the whole lab, while its place may make requests
        self._clients = threading.Semaphore(whole.MOST_CLIENTS_OF_PLACE)
        self.streams = Streams(self.send, self._accept, accepted=channel.REVERSE)

    def label(self):
        return f"{self.host} (place {self.name})"

    def send(self, message):
        self._starter.send(self.number, message)

    def try_to_send(self, message):
        with contextlib.suppress(Closed):
            self.send(message)

    def error(self):
        """Returns the error for a user of this place after a stream to it was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure or self.gone, timeout=5)
        return LabError(f"{self.label()}: {self.failure or 'its connection was closed'}")

    def is_silent(self):
        """Returns whether nothing arrives any more. Before the first message, the program may wait for its connection or in a queue."""
        return self.hello is not None and time.monotonic() - self._last > SILENCE and not self.gone

    def fail(self, reason):
        with self._changed:
            self._fail_locked(reason)
            self._changed.notify_all()
        self.streams.break_all()

    def open_control(self):
        """Returns a connection to its weftd. Raises Closed."""
        return ControlConnection(self.streams.open("control"))

    def _accept(self, stream, name):
        """The place has opened a stream, for requests of a client on its host. Runs on a thread of its own."""
        if name != "whole" or not self.topology or not self._clients.acquire(blocking=False):
            stream.close()
            return
        try:
            whole.serve_stream(self.topology, stream, whole.Reader(stream))
        finally:
            self._clients.release()

    def _fail_locked(self, reason):
        if not self.failure and not self.ended:
            self.failure, self.failed_at = printable(self._local(reason))[:LONGEST_TEXT] or "no reason", time.monotonic()
            self.failed_while_ending = self.ending

    def _local(self, text):
        """Replaces the paths of logs on the other host by those to which they are copied."""
        if not self.remote_logs:
            return text
        return text.replace(f"{self.remote_logs}/weftd", str(self._logs / self.name / "weftd")).replace(self.remote_logs, str(self._logs))

    # -- called by the starter ------------------------------------------------------------------

    def receive(self, line):
        self._last = time.monotonic()
        if self.failure or not line.strip():
            return
        try:
            if self.hello is None and not line.lstrip().startswith(b'{"hello"'):
                self._banner += 1
                if self._banner > MOST_BANNER:
                    raise Violation("too much text before the first message")
                return
            message = self._decoder.decode(line)
            if message is not None:
                self._take(message)
        except Violation as error:
            self.fail(f"it sent {error}")
        except OSError as error:
            self.fail(f"a log could not be written: {in_one_line(error)}")
        except Exception as error:      # the thread also reads the messages of other places
            self.fail(f"its message was not understood: {error!r}")

    def end(self, reason):
        with self._changed:
            self.gone = True
        self.fail(reason)

    def _take(self, message):
        if self.streams.take(message) or "alive" in message:
            return
        if "file" in message:
            self._take_file(message)
            return
        with self._changed:
            self._take_locked(message)
            self._changed.notify_all()

    def _take_locked(self, message):
        if "hello" in message:
            if self.hello is not None:
                raise Violation("a second greeting")
            self.hello = {"protocol": channel.number_of(message, "hello", 0, 1 << 31), "version": channel.text_of(message, "version", 64),
                          "node": channel.text_of(message, "node", 256), "address": None}
            self.remote_logs = channel.text_of(message, "logs", 4096)
            if message.get("address") is not None:
                self.hello["address"] = hosts_file.numeric(channel.text_of(message, "address", 64))
        elif "port" in message:
            self.port = channel.number_of(message, "port", 1, 65535)
        elif "serves" in message:
            hosts = message["serves"]
            if (self.guests is not None or not isinstance(hosts, list) or not all(isinstance(host, str) and host in self.plan.hosts for host in hosts)
                    or len(set(hosts)) < len(hosts)):
                raise Violation("hosts that it does not have")
            self.guests = hosts
        elif "up" in message:
            self.up = True
        elif "report" in message:
            self._take_report(channel.text_of(message, "report", LONGEST_TEXT))
        elif "note" in message:
            self._note(printable(f"{self.label()}: {self._local(channel.text_of(message, 'note', LONGEST_TEXT))[:LONGEST_NOTE]}"))
        elif "fetched" in message:
            name = channel.text_of(message, "fetched", 128)
            if name in self._abandoned:
                self._abandoned.remove(name)
                self._files.pop(name, None)
                return
            if name != self._requested:
                raise Violation("a file that was not requested")
            self._size = None if message.get("size") is None else channel.number_of(message, "size", 0, MOST_FETCHED)
            self._fetched = True
        elif "failed" in message:
            self.incomplete = self._incomplete_of(message)
            self._fail_locked(channel.text_of(message, "failed", LONGEST_TEXT))
        elif "ended" in message:
            if not self.ending:
                raise Violation("an end that was not requested")
            self.incomplete, self.ended = self._incomplete_of(message), True
        else:
            raise Violation("an unknown message")

    def _take_report(self, text):
        # After the start, there is no reader of the progress.
        if self.up or self.ending:
            return
        try:
            self._report(printable(in_line(f"{self.name}: {self._local(text)}")))
        except (OSError, ValueError) as error:
            self._fail_locked(f"its progress could not be reported: {in_one_line(error)}")

    def _incomplete_of(self, message):
        texts = message.get("incomplete")
        if not isinstance(texts, list) or len(texts) > MOST_INCOMPLETE or not all(isinstance(text, str) and len(text) < LONGEST_NOTE for text in texts):
            raise Violation("an end that is not valid")
        return [printable(in_line(self._local(text))) for text in texts]

    def missing(self):
        """Returns what is missing of the logs, in words, after the end."""
        failure = [f"{self.label()}: {self.failure}"] if self.failure and self.failed_while_ending else []
        return [*self.incomplete, *failure]

    # -- logs -----------------------------------------------------------------------------------

    def path_of(self, name):
        """Returns where a log of this place is copied to: consoles into the directory of the logs, others into one for the place."""
        host = name.removesuffix(".log")
        return self._logs / name if name.endswith(".log") and host in (self.guests or ()) else self._logs / self.name / name

    def _take_file(self, message):
        name = channel.text_of(message, "file", 128)
        offset, data = channel.number_of(message, "offset", 0, 1 << 53), channel.bytes_of(message, "bytes", channel.PIECE)
        with self._changed:
            if not hosts_file.FILE.fullmatch(name) or offset not in (0, self._files.get(name, 0)):
                raise Violation("a file that is not valid")
            requested = name == self._requested
            if requested:
                self._piece_at = time.monotonic()
            self._copied += 0 if requested else len(data)
            if self._copied > MOST_COPIED or len(self._files) >= MOST_FILES or requested and offset + len(data) > self._limit:
                raise Violation("more logs than are accepted")
            path = self.path_of(name)
        # The file system may hang, and all places share the lock. This thread reads all messages of the place, so the parts stay in order.
        self._write(path, offset, data)
        with self._changed:
            self._files[name] = offset + len(data)
            self._changed.notify_all()

    @staticmethod
    def _write(path, offset, data):
        """Writes a part of a copy; one at the beginning replaces a former file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file in the user's directory may be a link to another one.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if offset == 0 else 0), 0o600)
        try:
            if os.pwrite(number, data, offset) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        finally:
            os.close(number)

    def fetch(self, name, remove=False, limit=MOST_FETCHED):
        """Copies what is new of a log, perhaps removes it on the other host, and returns the path of the copy, or None if there is no such file. limit: of
        its bytes."""
        with self._fetching:
            with self._changed:
                if self.ending:
                    raise LabError("the lab is ending")
                if name in self._abandoned:
                    raise LabError(f"{self.label()}: it has not sent {name} yet, which was requested before", "try again later")
                self._requested, self._fetched, self._limit = name, False, limit
                offset = self._files.get(name, 0)
            try:
                self.send({"fetch": name, "offset": offset, "remove": remove})
            except Closed:
                raise self.error() from None
            with self._changed:
                # A large file takes long; each of its parts is a sign of life.
                self._piece_at = time.monotonic()
                while not (self._fetched or self.failure or self.gone):
                    if time.monotonic() - self._piece_at > FETCH_TIMEOUT:
                        self._requested = None
                        self._abandoned.add(name)
                        raise LabError(f"{self.label()}: it has not sent {name} within {FETCH_TIMEOUT} s")
                    self._changed.wait(0.5)
                self._requested = None
                if not self._fetched:
                    raise self.error()
                if self._size is None:
                    return None
                empty = name not in self._files
                if remove:
                    self._files.pop(name, None)
                elif empty:
                    self._files[name] = 0
            path = self.path_of(name)
            if empty:       # nothing has arrived; the directory may have a file of a former lab
                self._write(path, 0, b"")
        return path

    # -- requests -------------------------------------------------------------------------------

    def ask(self, request):
        """Passes a request on to the lab of the place, and yields its answers."""
        try:
            stream = self.streams.open("lab")
        except Closed:
            raise self.error() from None
        try:
            stream.send(json.dumps(request).encode() + b"\n")
            rest = b""
            while data := stream.receive():
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > MOST_ANSWER:
                    raise LabError(f"{self.label()}: its answer is too long")
                for line in lines:
                    yield self._answer(line)
        except Closed:
            raise self.error() from None
        finally:
            stream.close()

    def _answer(self, line):
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise LabError(f"{self.label()}: its answer is not understood")
        return answer

    def ask_for_status(self, request, report):
        """Passes a request on; report(text) is called with the texts of the answers. Returns the status."""
        size = 0
        for answer in self.ask(request):
            if isinstance(answer.get("err"), str):
                size += len(answer["err"]) + 1
                if size > MOST_ANSWERS:
                    raise LabError(f"{self.label()}: its answers are too long")
                report(printable(self._local(answer["err"])).rstrip("\n"))
            if "error" in answer:
                raise LabError(printable(self._local(str(answer["error"])))[:LONGEST_TEXT])
            if isinstance(answer.get("status"), int):
                return answer["status"]
        raise self.error()


class ControlConnection:
    """A connection to a place's weftd."""

    def __init__(self, stream):
        self._stream = stream
        self._reader = whole.Reader(stream)
        self.send = stream.send
        self.line = self._reader.line
        self.close = stream.close
