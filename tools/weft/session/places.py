# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab over several hosts. Each place of the lab file is a part of the fabric with its guests, and runs on a host of its own (remote_place.py).
This module starts the places, and presents them as one lab to `weft run` and `weft lab`.

Everything that a place sends is bounded and checked, because other people may control its host.
"""
import contextlib
import dataclasses
import errno
import ipaddress
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import tomllib

import channel
import hosts_file
import running
import serving
import stack
import starters
import whole
from channel import Closed, Streams, Violation
from lab import DeadlineExceeded, GuestDied, kernels
from lab.errors import LabError, in_one_line, printable
from lab.process import CONSUMED, ERR, EXIT, HEADER, INPUT, OUT, BadFrame, Process, read_frame
from labs import interruption, no_host
from remote_place import ALIVE_INTERVAL, LONGEST_LAB, MOST_INCOMPLETE, MOST_PORTS, PROTOCOL, SILENCE
from running import GUEST_DIED, KERNEL_REPORT, REFUSED
from weftd_process import is_served

KEY_BYTES = 32
PORTS_TIMEOUT = 90          # seconds until places have found ports for their trunks
SERVE_TIMEOUT = 90          # seconds until weftd serves all places
END_TIMEOUT = 60            # seconds that places have to end and to send their logs
MOST_BANNER = 200           # lines before the first message, such as those that a login script prints
LONGEST_NOTE = 4 << 10      # characters of a message about an event, or about a log
MOST_NOTES = 100            # that were not reported yet
MOST_ANSWERS = 1 << 20      # bytes of all answers to a request
LONGEST_TEXT = 64 << 10     # characters of a message for users
MOST_ANSWER = 1 << 20       # bytes of a line of an answer
MOST_ANSWER_OF_WEFTD = 64 << 20     # those of large fabrics are long
MOST_COPIED = 512 << 20     # bytes of a place's logs
MOST_FETCHED = 16 << 30     # bytes of a file that this side has requested
MOST_FILES = 2048
FETCH_TIMEOUT = 60          # seconds without a part of a file that was requested
KILL_SECONDS = 15           # that the starter's programs have to exit after the places have ended
PORT_ATTEMPTS = 100
CONTROL_BACKLOG = 16
REMEDY_FOR_ADDRESS = "write one after the host in the file of --hosts, or as the place's address in the lab file"
REMEDY_FOR_SLURM = "write one as the place's address in the lab file"


def in_line(text):
    """Returns a text without line feeds."""
    return " ".join(text.split("\n"))


def wanted(args):
    """Returns whether the lab runs on several hosts."""
    return bool(args.hosts or args.slurm)


# -- the plan -----------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class PlannedPlace:
    """name: of the place; address, port: from the lab file, or None; listening: number of trunks for which it listens; hosts: names of its hosts; manages:
    it runs the subnet manager, or one on standby; switches: names; trunks: whether it listens, by name."""

    name: str
    address: str | None
    port: int | None
    listening: int
    hosts: frozenset
    manages: bool
    switches: frozenset = frozenset()
    trunks: dict = dataclasses.field(default_factory=dict)


# The directory of a lab has a directory with the name of each place, among other files.
TAKEN = re.compile(r".*\.(sock|log|core|json|toml|pcapng)|lab-ended", re.DOTALL)


def read_plan(text):
    """Returns the PlannedPlaces in the output of `weftd --plan json`."""
    try:
        places = []
        for place in json.loads(text)["places"]:
            if not hosts_file.NAME.fullmatch(place["name"]) or TAKEN.fullmatch(place["name"]):
                raise LabError(f"a place of a lab over several hosts cannot be called '{place['name']}'", "call it for example rack1")
            address, port = (None, None)
            if place.get("address"):
                if not (found := hosts_file.split(place["address"])):
                    raise LabError(f"the address '{place['address']}' of the place {place['name']} is not one of a host")
                address, port = found
            trunks = {trunk["link"]: trunk["role"].startswith("listen") for trunk in place["trunks"]}
            places.append(PlannedPlace(place["name"], address, port, sum(trunks.values()), frozenset(place["hosts"]), place.get("subnet_manager") is True or place.get("standby") is True,
                                       frozenset(place["switches"]), trunks))
        return places
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"the plan of the lab is not understood: {error!r}") from None


def has_places(text):
    """Returns whether a lab file describes its places. weftd reports a file that is not valid."""
    try:
        return bool(tomllib.loads(text).get("place"))
    except tomllib.TOMLDecodeError:
        return True


def make_plan(weftd, lab_file, count):
    """Returns the places of a lab file. count: their number, for a file without places, or 0."""
    places = ["--places", str(count)] if count else []
    done = subprocess.run([weftd, "--lab", str(lab_file), "--plan", "json", *places], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError((done.stderr or done.stdout).strip() or f"{weftd} has not planned the lab")
    return read_plan(done.stdout)


# -- one place ----------------------------------------------------------------------------------

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


# -- guests -------------------------------------------------------------------------------------

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


class ControlConnection:
    """A connection to a place's weftd."""

    def __init__(self, stream):
        self._stream = stream
        self._reader = whole.Reader(stream)
        self.send = stream.send
        self.line = self._reader.line
        self.close = stream.close


# -- the lab ------------------------------------------------------------------------------------

class PlacedLab:
    """A lab over several hosts. Created, started and closed on the main thread, like a labs.Lab."""

    def __init__(self, directory, logs, args, settings, report, command):
        """command: "up" or "run"."""
        self.directory = directory
        self.logs = logs
        self.guests = {}
        self.places = []
        self.logs_wanted = args.logs is not None
        self.reported = set()       # by verify()
        self.stopping = threading.Event()
        self.weftd = _NoDaemon()
        self._args = args
        self._settings = settings
        self._report = report
        self._command = command
        self._changed = threading.Condition(threading.RLock())
        self._notes = []
        self._starter = None
        self._whole = None
        self._closed = False
        self._begun = time.monotonic()

    def report(self, text):
        self._report(f"[{time.monotonic() - self._begun:5.1f} s] {text}")

    def missing(self):
        """Returns what is missing of the logs, in words, after close()."""
        return [text for place in self.places for text in place.missing()]

    # -- start ----------------------------------------------------------------------------------

    def up(self, check=lambda _: None):
        """Starts all places and their guests. check(names of hosts): called before any guest boots; it may raise an exception."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        settings = self._settings_for_others()
        text, plan = self._plan()
        self._starter.start(self._receive, self._end)
        for place in self.places:
            threading.Thread(target=self._keep_alive, args=(place,), daemon=True).start()
        self._await("the hosts to answer", self._starter.connect_timeout, lambda place: place.hello)
        self._check_versions()
        peers = self._find_addresses()
        key = secrets.token_bytes(KEY_BYTES)
        for place in self.places:
            place.try_to_send({"start": {"name": place.name, "places": 0 if has_places(text) else len(plan), "lab": text, "peers": peers, "key": channel.to_text(key), "settings": settings,
                                         "bare": bool(self._args.bare), "managed": any(place.manages for place in plan), "restart": not self._args.no_restart,
                                         "line": self._starter.longest, "command": self._command}})
        self._await("weftd to serve all places", SERVE_TIMEOUT, lambda place: place.guests is not None)
        hosts = [(host, place) for place in self.places for host in place.guests]
        check([host for host, _ in hosts])
        self.guests = {host: RemoteGuest(host, place) for host, place in hosts}
        self._serve_whole()
        for place in self.places:
            place.try_to_send({"boot": True})
        self._await("the guests", None, lambda place: place.up)

    def _serve_whole(self):
        """Serves the control socket of the whole lab."""
        path = self.directory / serving.CONTROL
        if is_served(path):
            raise LabError(f"another weftd serves {self.directory}", "end it, or choose another --socket-dir")
        topology = whole.Topology(self.places)
        for place in self.places:
            place.topology = topology
        self._whole = whole.Socket(path, whole.MOST_CLIENTS, lambda client: whole.serve_client(topology, client))

    def _settings_for_others(self):
        """Returns the guests' settings. Files have the same paths on all hosts, and those of this command's directory become absolute."""
        settings = dataclasses.asdict(self._settings)
        for name in ("modules", "initrd", "share"):
            if settings[name]:
                settings[name] = os.path.abspath(settings[name])
        if settings["kernel"] not in kernels.VARIANTS:
            settings["kernel"] = os.path.abspath(settings["kernel"])
        return settings

    def _plan(self):
        """Reads the lab and the hosts, and makes the starter; returns (the text of the lab file, its places)."""
        args = self._args
        lines = hosts_file.read(args.hosts) if args.hosts else None
        count = int(len(lines) if lines else args.nodes or starters.nodes_of(os.environ) or 0)
        if not count:
            raise LabError("the number of hosts is not known", "give it by --nodes, or call this in an allocation of Slurm")
        if args.lab:
            data, lab_file = pathlib.Path(args.lab).read_bytes(), args.lab
            if len(data) > LONGEST_LAB:
                raise LabError(f"{args.lab} is longer than {LONGEST_LAB >> 20} MiB")
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise LabError(f"{args.lab} is not text in UTF-8") from None
        else:
            # The name must not be one that a user would give a file, because the directory may belong to the user.
            text, lab_file = stack.host_in_each_place(args.card or "mlx4", count), self.directory / ".weft-places.toml"
            lab_file.write_text(text, encoding="utf-8")
        try:
            plan = make_plan(args.weftd, lab_file, 0 if has_places(text) else count)
        finally:
            if not args.lab:
                lab_file.unlink(missing_ok=True)
        weft = args.remote_weft or "weft"
        if lines:
            assigned = hosts_file.assign(lines, [place.name for place in plan], args.hosts)
            self._starter = starters.Ssh(args.ssh or "ssh -o BatchMode=yes", weft, [assigned[place.name] for place in plan])
        elif count != len(plan):
            raise LabError(f"the lab has {len(plan)} places, and there are {count} nodes")
        else:
            self._starter = starters.Slurm(args.srun or "srun", weft, len(plan))
        self.places = [Place(number, place, host, self._starter, self._changed, self.report, self._take_note, self.logs)
                       for number, (place, host) in enumerate(zip(plan, self._starter.hosts))]
        return text, plan

    def _check_versions(self):
        for place in self.places:
            # Slurm chooses the host.
            if self._args.slurm:
                place.host = printable(place.hello["node"])
            if (place.hello["protocol"], place.hello["version"]) != (PROTOCOL, self._args.version or ""):
                raise LabError(f"{place.label()}: its weft has version {printable(place.hello['version'])}, and this one {self._args.version}", "install the same version on all hosts")

    def _find_addresses(self):
        """Determines where each place listens for trunks."""
        for place in self.places:
            given = self._starter.address(place.number)
            place.address = given[0] or place.plan.address or place.hello["address"]
            place.port = given[1] or (place.plan.port if not given[0] or given[0] == place.plan.address else None)
        listening = [place for place in self.places if place.plan.listening]
        known = [ipaddress.ip_address(place.address).is_loopback for place in self.places if place.address]
        remedy = REMEDY_FOR_SLURM if isinstance(self._starter, starters.Slurm) else REMEDY_FOR_ADDRESS
        for place in listening:
            if not place.address:
                raise LabError(f"{place.label()}: its address is not known", remedy)
            if ipaddress.ip_address(place.address).is_loopback and not all(known):
                raise LabError(f"{place.label()}: the other hosts cannot reach its address {place.address}", remedy)
            if place.plan.listening > MOST_PORTS:
                raise LabError(f"the place {place.name} has too many trunks")
        # Several places may run on one host, and a port that one has found is free until its weftd listens.
        unknown = [place for place in listening if not place.port]
        for _ in range(PORT_ATTEMPTS):
            for place in unknown:
                place.try_to_send({"reserve": place.plan.listening, "address": place.address})
            self._await("ports for the trunks", PORTS_TIMEOUT, lambda place: place.port or place not in listening)
            again = [place for place in unknown if self._overlaps(place, listening)]
            if not again:
                break
            # One at a time, since the others keep theirs.
            unknown = again[:1]
            unknown[0].port = None
        else:
            raise LabError(f"{unknown[0].label()}: there are no free ports for its trunks")
        return [f"{place.name}={hosts_file.together(place.address, place.port)}" for place in listening]

    @staticmethod
    def _overlaps(place, others):
        """Returns whether another place with the same address has one of a place's ports."""
        return any(other is not place and other.address == place.address and place.port < other.port + other.plan.listening and other.port < place.port + place.plan.listening
                   for other in others)

    def _await(self, what, seconds, condition):
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._changed:
                self._raise_failure()
                missing = [place for place in self.places if not condition(place)]
                if not missing:
                    return
                if deadline and time.monotonic() > deadline:
                    raise LabError(f"waited {seconds} s for {what}: {', '.join(place.label() for place in missing)}")
                self._changed.wait(0.5)
            interruption.check()
            self._check_silence()

    def _raise_failure(self):
        failed = [place for place in self.places if place.failure]
        if failed:
            first = min(failed, key=lambda place: place.failed_at)
            said = [text for line in self._starter.said() if (text := printable(line)) not in first.failure]
            raise LabError("\n".join([f"{first.label()}: {first.failure}", *said]))

    def _check_silence(self):
        for place in self.places:
            if place.is_silent() and not place.failure:
                place.fail(f"nothing has arrived from it for {SILENCE} s")

    def _keep_alive(self, place):
        while not self._closed and not place.gone:
            time.sleep(ALIVE_INTERVAL)
            place.try_to_send({"alive": True})

    def _receive(self, number, line):
        self.places[number].receive(line)

    def _end(self, number, reason):
        self.places[number].end(reason)
        self.weftd.notify()

    def _take_note(self, text):
        with self._changed:
            self._notes[:] = [*self._notes, text][-MOST_NOTES:]
        self.weftd.notify()

    # -- while it runs --------------------------------------------------------------------------

    def look_after(self, report=None):
        """Raises LabError if a place has failed. report(text) gets what places have reported."""
        with self._changed:
            notes, self._notes[:] = list(self._notes), []
            for text in notes:
                (report or self.report)(text)
            self._raise_failure()
        self._check_silence()

    def place_of(self, host):
        guest = self.guests.get(host)
        if not guest:
            raise no_host(host, self.guests)
        return guest._place

    def verify(self, report):
        """Asks all places for reports of kernels, guests that have exited and consoles that are incomplete; returns the status as of `weft lab
        check`."""
        def once(text):
            self.reported.add(text)
            report(text)

        statuses = [place.ask_for_status({"check": True}, once) for place in self.places]
        return next((status for status in (KERNEL_REPORT, GUEST_DIED) if status in statuses), next((status for status in statuses if status), 0))

    def restart(self, names, report):
        for name in names:
            self.place_of(name)
        for place in self.places:
            if hosts := [name for name in names if self.place_of(name) is place]:
                place.ask_for_status({"restart": hosts}, report)

    # -- end ------------------------------------------------------------------------------------

    def close(self):
        """Ends all places, and copies their logs. Whatever a failed place leaves behind is removed by its own host."""
        if self._whole:
            self._whole.close()
        if self._closed or not self._starter:
            return
        try:
            for place in self.places:
                place.ending = True
                if not place.is_silent():
                    place.try_to_send({"down": True})
            deadline = time.monotonic() + END_TIMEOUT
            with self._changed:
                # A place without a first message has no logs. It ends when its input is closed.
                while not all(place.ended or place.gone or place.hello is None or place.is_silent() for place in self.places) and time.monotonic() < deadline:
                    self._changed.wait(0.5)
            for place in self.places:
                if place.hello is not None and not place.ended:
                    place.fail("it has not ended in time, and logs may be missing")     # unless it has failed already
        finally:
            self._closed = True
            # A program that waits in a queue or for a connection does not notice that its input was closed.
            self._starter.finish(KILL_SECONDS if any(place.hello for place in self.places) else 0)
            for place in self.places:
                place.streams.break_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.close()


class _NoDaemon:
    """Stands for the weftd of a labs.Lab, of which a Server wants to know when it has exited."""

    def __init__(self):
        self.notify = lambda: None


class ControlProxy:
    """Passes requests for a place's weftd on, and its answers: one line each. weftd writes captures on its own host, from which they are copied when
    they end."""

    def __init__(self, place, client, stream):
        self._place = place
        self._client = client
        self._requests, self._answers = client.makefile("rb"), whole.Reader(stream)
        self._stream = stream
        self._capture = None    # (name on the place's host, path for the user)

    def serve(self):
        try:
            while (line := self._requests.readline(MOST_ANSWER)).endswith(b"\n"):
                command, refused, line, capture = self._prepare(line)
                if refused:
                    self._refuse(refused)
                    continue
                self._stream.send(line)
                answer = self._answers.line(MOST_ANSWER_OF_WEFTD)
                if not answer:
                    return
                if command in ("capture.start", "capture.stop") and self._is_ok(answer):
                    try:
                        self._capture = capture or self._copy()
                    except (LabError, OSError) as error:
                        self._refuse(f"the capture could not be copied: {in_one_line(error)}")
                        continue
                self._client.sendall(answer)
        finally:
            if self._capture:       # the client has disconnected, which would stop the capture
                self._stream.send(b'{"command": "capture.stop"}\n')
                self._answers.line(MOST_ANSWER_OF_WEFTD)
                self._copy()

    def _refuse(self, why):
        self._client.sendall(json.dumps({"ok": False, "error": printable(why)}).encode() + b"\n")

    @staticmethod
    def _is_ok(answer):
        try:
            return json.loads(answer)["ok"] is True
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def _prepare(self, line):
        """Returns (the command or None, why the request is refused or None, the line to pass on, the value of _capture after its success)."""
        try:
            request = json.loads(line)
            command = request["command"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None, None, line, None       # weftd reports what is wrong
        if command in whole.REFUSED:
            return command, whole.REFUSED[command], line, None
        if command != "capture.start" or not isinstance(request.get("file"), str):
            return command if isinstance(command, str) else None, None, line, None
        if request.get("at_once"):
            return command, whole.NO_STANDARD_OUTPUT, line, None
        # If the lab ends before the capture does, it is copied with the logs.
        name = f"capture-{next(whole.numbers)}.pcapng"
        return command, None, json.dumps({**request, "file": f"{self._place.remote_logs}/{name}"}).encode() + b"\n", (name, pathlib.Path(request["file"]))

    def _copy(self):
        if self._capture:
            (name, path), self._capture = self._capture, None
            if copy := self._place.fetch(name, remove=True):
                shutil.move(copy, path)


class PlacedServer(serving.Server):
    """Serves the socket of a lab over several hosts: requests are passed on to the place of the host that they are for."""

    def __init__(self, lab, path, logs_wanted):
        super().__init__(lab, path, logs_wanted)
        self._listeners = []
        try:
            for place in lab.places:
                self._listen(place)
        except BaseException:
            self.close()
            raise

    def _listen(self, place):
        """Makes the control socket of a place available in a directory with its name."""
        directory = self.lab.directory / place.name
        directory.mkdir(mode=0o700, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = directory / serving.CONTROL
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen(CONTROL_BACKLOG)
        self._listeners.append((listener, path))
        threading.Thread(target=self._accept_control, args=(listener, place), daemon=True).start()

    def _accept_control(self, listener, place):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                threading.Thread(target=self._serve_control, args=(client, place), daemon=True).start()
            except RuntimeError:
                client.close()

    @staticmethod
    def _serve_control(client, place):
        with client, contextlib.suppress(Closed, LabError, OSError):
            stream = place.streams.open("control")
            try:
                ControlProxy(place, client, stream).serve()
            finally:
                stream.close()

    @staticmethod
    def _join(client, place, name, first):
        """Connects a client to a socket of a place. first: what the client has sent already."""
        with client:
            try:
                stream = place.streams.open(name)
                if first:
                    stream.send(first)
            except Closed:
                raise place.error() from None
            channel.join(stream, client)

    def close(self):
        """Removes the sockets."""
        self.path.unlink(missing_ok=True)
        for listener, path in self._listeners:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            with contextlib.suppress(OSError):
                path.parent.rmdir()     # if there are no logs in it

    def answer(self, client):
        with client:
            def send(**message):
                client.sendall(json.dumps(message).encode() + b"\n")

            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                line = self._first_line(client)
                message = json.loads(line)
                try:
                    self._answer(client, line, message, send)
                except LabError as error:
                    if "host" in message:
                        text = str(error).encode()
                        client.sendall(HEADER.pack(len(text), 0, serving.FAILED) + text)
                    else:
                        send(error=str(error))

    @staticmethod
    def _first_line(client):
        """Reads no byte after the line, because the rest is passed on."""
        line = b""
        while not line.endswith(b"\n") and len(line) <= MOST_ANSWER:
            seen = client.recv(channel.PIECE, socket.MSG_PEEK)
            if not seen:
                break
            line += client.recv(seen.index(b"\n") + 1 if b"\n" in seen else len(seen))
        return line

    def _answer(self, client, line, message, send):
        lab = self.lab
        if message.get("down"):
            self.change(self._down, None, serving.quietly(self._with_status(send)))
            self.done.set()
            self.changes.put(None)
        elif "restart" in message:
            self.change(lab.restart, message["restart"], serving.quietly(send))
        elif "log" in message:
            place = lab.place_of(message["log"])
            path = place.fetch(f"{message['log']}.log")
            if not path:
                raise LabError(f"{place.label()} has no console of {message['log']}")
            send(status=0, path=str(path.absolute()), copy=True)
        elif "check" in message:
            self.check(serving.quietly(send))
        elif "host" in message:
            self._join(client, lab.place_of(message["host"]), "lab", line)
        else:
            raise LabError("this is not possible in a lab over several hosts", "end it, and start it again")

    def _down(self, _, report):
        # A client that has got its answer may start the next lab in this directory.
        self.lab.close()
        self.close()
        for text in self.lab.missing():
            report(text)

    def _with_status(self, send):
        def call(**message):
            if message.get("status") == 0 and self.logs_wanted and self.lab.missing():
                message["status"] = REFUSED
            send(**message)
        return call

    def check(self, send):
        with self.checking:
            messages, self.messages = self.messages, []
        for text in messages:
            send(err=f"{printable(text)}\n")
        status = self.lab.verify(lambda text: send(err=f"{text}\n"))
        if status == REFUSED and not self.logs_wanted:
            status = 0
        send(status=status or (GUEST_DIED if messages else 0))


def verify(lab, _printed=None):
    """Does the same as running.verify() for the guests of all places."""
    status = lab.verify(lambda text: print(printable(f"weft run: {text}"), file=sys.stderr))
    return 0 if status == REFUSED and not lab.logs_wanted else status


def up(args, settings):
    return serving.up(args, settings, lambda *given: PlacedLab(*given, "up"), PlacedServer)


def run(args, settings):
    made = []

    def lab_of(*given):
        made.append(PlacedLab(*given, "run"))
        return made[0]

    missing = []
    try:
        status = running.run(args, settings, lab_of, verify)
    finally:
        # The lab has ended, and its places have sent their logs.
        for lab in made:
            missing += lab.missing()
        for text in missing:
            if text in made[0].reported:
                continue
            print(printable(f"weft run: {text}"), file=sys.stderr)
    return status or (REFUSED if missing and args.logs else 0)
