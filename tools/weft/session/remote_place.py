# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft lab place`, which runs the part of a lab on one of several hosts. The program that starts the lab (places.py) starts this one by
ssh or srun, and controls it by messages over standard input and output (channel.py). The program that starts the lab sends these messages:

    {"reserve": COUNT, "address": TEXT}     requests COUNT free TCP ports for trunks
    {"start": {...}}            describes the lab and its settings, see _Start
    {"boot": true}              starts the guests
    {"fetch": NAME, "offset": BYTES, "remove": BOOLEAN}     requests a file of the log directory from the offset on, and then perhaps its removal
    {"down": true}              ends the lab
    {"alive": true}             shows that the sender is alive

This program sends these messages:

    {"hello": PROTOCOL, "version": TEXT, "node": TEXT, "address": TEXT or null, "logs": TEXT}   is the first message; "logs" is the log directory
    {"port": NUMBER}            reports the first of COUNT free ports with consecutive numbers
    {"serves": [HOST...]}       reports that weftd serves the place, which has these guests
    {"up": true}                reports that the guests are up
    {"report": TEXT}            reports progress
    {"note": TEXT}              reports an event such as a restart of weftd
    {"file": NAME, "offset": BYTES, "bytes": BASE64}    contains a part of a requested file
    {"fetched": NAME, "size": BYTES or null}    follows the last part, and has the size of the file, or null if there is no such file
    {"failed": TEXT, "incomplete": [TEXT...]}   has the reason why the place has ended, and which logs are incomplete
    {"ended": true, "incomplete": [TEXT...]}    answers "down"
    {"alive": true}             shows that the sender is alive

No files of the lab stay on the host. The lab runs in a child process. The parent waits for the child and removes the lab's directory, even if the
child was killed. The lab ends when standard input is closed, or when no message has arrived for SILENCE seconds.
"""
import contextlib
import ctypes
import dataclasses
import errno
import ipaddress
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

import channel
import hosts_file
import serving
import starters
import whole
from channel import Closed, Streams, Violation
from lab import DeadlineExceeded, GuestDied
from lab.errors import LabError, exit_in_words, in_one_line
from labs import GuestSettings, Lab, interruption, program_in_same_directory
from running import incomplete_logs

PROTOCOL = 1
ALIVE_INTERVAL = 5      # seconds
SILENCE = 60            # seconds without a message, after which the other side is considered gone
START_TIMEOUT = 240     # seconds until the lab has to arrive; other places may need starters.SSH_TIMEOUT
ORPHAN_TIMEOUT = 20     # seconds that the lab's programs have to exit after its process was killed
LONGEST_LAB = 2 << 20
FIRST_PORT, LAST_PORT, MOST_PORTS = 16384, 32768, 4096
PORT_ATTEMPTS = 100
MOST_LOGS = 1024        # files that are sent when the lab ends
MOST_LOG_BYTES = 64 << 20   # of one file; a longer one is not sent
MOST_INCOMPLETE = 4096      # messages about what is missing
LOGS = "logs"
WHOLE = "lab"           # the directory with the control socket of the whole lab, which weft finds on this host
SOCKETS = {"lab": serving.SOCKET, "control": serving.CONTROL}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)     # that end a place
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


@dataclasses.dataclass(frozen=True)
class _Start:
    """What the other side sends first.

    name, places: of this place, and how many there are, or 0 if the lab file describes them; lab: the text of the lab file; peers: NAME=HOST:PORT of the places that listen; key: of the trunks;
    settings: of the guests (GuestSettings); line: bytes of the longest line to send
    """

    name: str
    places: int
    lab: str
    peers: list
    key: bytes
    settings: dict
    bare: bool
    managed: bool
    restart: bool
    line: int
    command: str

    @classmethod
    def parse(cls, message):
        fields = message.get("start")
        if not isinstance(fields, dict):
            raise Violation("no lab has arrived")
        peers, settings = fields.get("peers"), fields.get("settings")
        if not isinstance(peers, list) or not all(isinstance(peer, str) for peer in peers):
            raise Violation("the field peers is not a list of texts")
        known = {field.name for field in dataclasses.fields(GuestSettings)}
        if not isinstance(settings, dict) or not set(settings) <= known:
            raise Violation("the field settings has unknown names")
        return cls(channel.text_of(fields, "name", 64), channel.number_of(fields, "places", 0, 1 << 16), channel.text_of(fields, "lab", LONGEST_LAB), peers,
                   channel.bytes_of(fields, "key", 1024), settings, fields.get("bare") is True,
                   fields.get("managed") is True, fields.get("restart") is not False,
                   channel.number_of(fields, "line", 200, channel.LONGEST_LINE), channel.text_of(fields, "command", 16))


class Connection:
    """Standard input and output. Messages arrive on a thread; when the other side requests the end or is gone, the main thread gets SIGTERM."""

    def __init__(self, output, rank):
        self._rank = rank       # the messages that have another "to" are for other places
        self._output = output
        self.writer = channel.Writer(output, starters.SRUN_LINE if rank is not None else channel.LONGEST_LINE)
        self.streams = Streams(self.send, self._accept, first=channel.REVERSE)
        self.directory = None   # in which the lab's sockets are
        self.fetch = lambda message: None
        self.starts, self.boots = queue.SimpleQueue(), threading.Event()
        self.ending = None      # why the lab ends: "down", or the reason in words
        self._last = time.monotonic()

    def begin(self):
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def send(self, message):
        self.writer.send(message)

    def try_to_send(self, message):
        with contextlib.suppress(Closed):
            self.send(message)

    def _read(self):
        decoder = channel.Decoder()
        try:
            while line := sys.stdin.buffer.readline(channel.LONGEST_LINE + 16):
                self._last = time.monotonic()
                message = decoder.decode(line)
                if message is not None:
                    self._take(message)
            reason = "its connection was closed"
        except Violation as error:
            reason = f"it received {error}"
        except OSError as error:
            reason = in_one_line(error)
        self._end(reason)

    def _take(self, message):
        if self._rank is not None and message.get("to") != self._rank:
            return
        if self.streams.take(message):
            return
        if "start" in message or "reserve" in message:
            self.starts.put(message)
        elif "boot" in message:
            self.boots.set()
        elif "fetch" in message:
            threading.Thread(target=self.fetch, args=(message,), daemon=True).start()
        elif "down" in message:
            self._end("down")
        elif "alive" not in message:
            raise Violation("an unknown message")

    def _end(self, reason):
        if self.ending is None:
            self.ending = reason
            os.kill(os.getpid(), signal.SIGTERM)

    def _keep_alive(self):
        while self.ending is None:
            time.sleep(ALIVE_INTERVAL)
            if time.monotonic() - self._last > SILENCE:
                self._end(f"nothing has arrived for {SILENCE} s")
            self.try_to_send({"alive": True})

    def _accept(self, stream, name):
        """Connects a stream to a socket of the lab."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(str(self.directory / SOCKETS[name]))
            except (OSError, KeyError, TypeError):
                stream.close()
                return
            channel.join(stream, connection)


class PlaceServer(serving.Server):
    """Serves the requests that the other side passes on. Events are sent to it at once."""

    def __init__(self, lab, path, connection, command):
        super().__init__(lab, path, logs_wanted=True)
        self._connection = connection
        self._command = command

    def note(self, text):
        super().note(text)
        with self.checking:
            self.messages = []
        self._connection.try_to_send({"note": text})

    def remedy(self, guest):
        return super().remedy(guest) if self._command == "up" else ""


def own_address(rank):
    """Returns the address by which the starting host has reached this one, if ssh or Slurm has recorded it. rank: of the task of srun, or None."""
    if rank is None:
        words = os.environ.get("SSH_CONNECTION", "").split()
        return words[2] if len(words) == 4 else None
    # srun exports the user's environment, in which SSH_CONNECTION is that of the login node.
    candidates = []
    if launcher := os.environ.get("SLURM_LAUNCH_NODE_IPADDR"):
        with contextlib.suppress(OSError, ValueError):
            family = socket.AF_INET6 if ipaddress.ip_address(launcher).version == 6 else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((launcher, 9))    # sends nothing, but selects the route
                candidates.append(probe.getsockname()[0])
    return candidates[0] if candidates else None


def free_ports(address, count):
    """Reserves `count` TCP ports in a row that are free; returns the first one and the sockets that keep them. They are below the ports that Linux
    gives to clients.

    A socket without SO_REUSEADDR can be bound only if no other socket has the port. Setting the option afterwards permits weftd, which also has it, to
    bind its own socket to the port and to listen. All programs without the option are still refused, and so is another reservation.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    choices = random.SystemRandom()
    for _ in range(PORT_ATTEMPTS):
        first = choices.randrange(FIRST_PORT, LAST_PORT - count)
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    end = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
                    end.bind((address, port))
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise LabError(f"cannot listen at {address}: {error.strerror}") from None
                continue
            return first, stack.pop_all()
    raise LabError(f"there are no {count} free ports in a row")


def logs_to_send(directory):
    """Returns the files of a directory that are sent when the lab ends, and what is said about the others."""
    files, omitted = [], []
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix == ".core":
            omitted.append(f"{path.name} was not copied, because it can contain the key of the trunks")
        elif path.stat().st_size > MOST_LOG_BYTES:
            omitted.append(f"{path.name} was not copied, because it is longer than {MOST_LOG_BYTES >> 20} MiB")
        else:
            files.append(path)
    if len(files) > MOST_LOGS:
        omitted.append(f"{len(files) - MOST_LOGS} files were not copied, because there are more than {MOST_LOGS}")
    return files[:MOST_LOGS], omitted


def _key_file(key):
    """Returns a descriptor of a file in memory with the key of the trunks. It is on no disk, and only its owner may read it."""
    descriptor = os.memfd_create("weft-trunk-key")
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, key)
    return descriptor


class Place:
    """The lab of a place, in the process that runs it."""

    def __init__(self, args, directory, connection):
        self._args = args
        self._directory = directory
        self._logs = directory / LOGS
        self._connection = connection
        self._start = None
        self._lab = None
        self._incomplete = []
        self._reserved = contextlib.ExitStack()     # sockets at the ports of the trunks, until weftd listens there
        self._sending = threading.Lock()    # held while a file is sent
        self._fetches = True                # requests for files are answered

    def run(self):
        """Runs the lab until it ends; returns the exit status."""
        # Slurm sends SIGTERM to all processes of a job, and the parent process also passes it on.
        interruption.watch(*SIGNALS, once=True)
        reason = None
        try:
            reason = self._run()
        except KeyboardInterrupt:
            pass
        except (LabError, DeadlineExceeded, GuestDied, Violation) as error:
            reason = str(error)
        except OSError as error:
            reason = in_one_line(error)
        # From here on, a signal ends nothing that is not ending already.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if reason is None and self._connection.ending != "down":
            reason = self._connection.ending or f"its session was ended by {signal.Signals(interruption.number).name}"
        if self._lab:
            with contextlib.suppress(OSError):
                self._lab.close()
        with self._sending:
            self._fetches = False       # the final logs begin at their first bytes, and are not mixed with other parts of the same files
        with contextlib.suppress(Closed):
            self._send_logs()
            self._connection.send({**({"failed": reason} if reason else {"ended": True}), "incomplete": self._incomplete[:MOST_INCOMPLETE]})
        # The status is 0 although the place may have failed. After another one, srun would kill the other places before they have sent their logs.
        self._connection.writer.finish(10)
        return 0

    def _run(self):
        """Returns why the lab has ended."""
        self._start = start = self._await_start()
        self._connection.writer.limit(start.line)
        lab_file = self._directory / "lab.toml"
        lab_file.write_text(start.lab, encoding="utf-8")
        key = _key_file(start.key)
        placement = [f"--place={start.name}", "--trunk-key", f"/proc/self/fd/{key}", *(["--places", str(start.places)] if start.places else [])]
        for peer in start.peers:
            placement += ["--peer", peer]
        settings = GuestSettings(**start.settings)
        for name in ("initrd", "share", "modules"):
            if (path := getattr(settings, name)) and not pathlib.Path(path).exists():
                raise LabError(f"--{name} {path} does not exist on this host")
        sockets = self._directory / "run"
        self._lab = lab = Lab(sockets, self._logs, program_in_same_directory(self._args.weftd), lab_file, settings, start.bare,
                              lambda text: self._connection.try_to_send({"report": text}), restart=start.restart, placement=placement, descriptors=[key],
                              managed=start.managed)
        self._connection.fetch = self.fetch
        lab.up(self._agree)
        server = PlaceServer(lab, sockets / serving.SOCKET, self._connection, start.command)
        self._connection.directory = sockets
        self._connection.send({"up": True})
        whole_lab = self._directory / WHOLE
        whole_lab.mkdir(mode=0o700)
        whole.Socket(whole_lab / serving.CONTROL, whole.MOST_CLIENTS_OF_PLACE, self._pass_on)
        return server.serve()

    def _pass_on(self, client):
        """Passes the requests of a client on this host on to the program that has started the lab."""
        whole.Passing(client, self._connection.streams.open("whole")).serve()

    def _await_start(self):
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            interruption.check()        # a signal may wake another thread than the main thread
            try:
                message = self._connection.starts.get(timeout=0.5)
            except queue.Empty:
                continue
            if "start" in message:
                return _Start.parse(message)
            count, address = channel.number_of(message, "reserve", 1, MOST_PORTS), hosts_file.numeric(channel.text_of(message, "address", 64))
            if not address:
                raise Violation("an address that is not numeric")
            self._reserved.close()
            port, self._reserved = free_ports(address, count)
            self._connection.send({"port": port})
        raise LabError(f"no lab has arrived within {START_TIMEOUT} s")

    def _agree(self, hosts):
        """Guests boot after weftd serves all places."""
        self._reserved.close()
        self._connection.directory = self._directory / "run"     # commands for weftd work from now on
        self._connection.send({"serves": hosts})
        while not self._connection.boots.wait(0.5):
            interruption.check()

    def fetch(self, message):
        """Sends a log that the other side has requested."""
        name, size = str(message["fetch"]), None
        with self._sending, contextlib.suppress(OSError, Closed, Violation):
            if self._fetches and hosts_file.FILE.fullmatch(name):
                size = self._send_file(self._logs / name, channel.number_of(message, "offset", 0, 1 << 53))
                if message.get("remove") is True:
                    (self._logs / name).unlink()
        self._connection.try_to_send({"fetched": name, "size": size})

    def _send_file(self, path, offset=0):
        """Sends a file from an offset on; returns its size."""
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if offset > size:
                offset = 0      # the file has become shorter
            file.seek(offset)
            while offset < size and (piece := file.read(min(channel.PIECE, size - offset))):
                self._connection.send({"file": path.name, "offset": offset, "bytes": channel.to_text(piece)})
                offset += len(piece)
        return offset

    def _send_logs(self):
        if not self._lab:
            return
        self._incomplete = [text for _, text in incomplete_logs(list(self._lab.guests.values()))]
        files, omitted = logs_to_send(self._logs)
        self._incomplete += [f"{text} (place {self._start.name})" for text in omitted]
        for path in files:
            try:
                if not self._send_file(path):
                    self._connection.send({"file": path.name, "offset": 0, "bytes": ""})
            except OSError as error:
                self._incomplete.append(f"{path.name} was not copied: {error.strerror} (place {self._start.name})")


# -- the parent process -------------------------------------------------------------------------

def _prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _wait_for_orphans():
    """The programs of a lab whose process was killed get a signal from the kernel. They are children of this process now."""
    deadline = time.monotonic() + ORPHAN_TIMEOUT
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        if time.monotonic() > deadline:
            with contextlib.suppress(OSError):
                for number in children.read_text().split():
                    os.kill(int(number), signal.SIGKILL)
            if time.monotonic() > deadline + ORPHAN_TIMEOUT:
                return
        time.sleep(0.05)


def _directory():
    """Returns a new directory, of which only the user has access. The path is short, because it is that of sockets."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if not base or len(base) > 60 or not os.access(base, os.W_OK):
        base = None
    return pathlib.Path(tempfile.mkdtemp(prefix="weft-place-", dir=base))


def place(args):
    rank = None
    if args.slurm:
        try:
            rank = int(os.environ["SLURM_PROCID"])
        except (KeyError, ValueError):
            raise LabError("SLURM_PROCID is not set", "`weft lab up --slurm` starts this command by srun") from None
    # What other code prints must not get among the messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    directory = _directory()
    parent = os.getpid()
    child = 0
    try:
        child = os.fork()
        if child == 0:
            _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)
            os._exit(_run(args, directory, output, rank))
        return _guard(child, output)
    finally:
        if child:
            shutil.rmtree(directory, ignore_errors=True)


def _run(args, directory, output, rank):
    try:
        connection = Connection(output, rank)
        connection.send({"hello": PROTOCOL, "version": args.version or "", "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(), "address": own_address(rank),
                         "logs": str(directory / LOGS)})
        connection.begin()
        try:
            return Place(args, directory, connection).run()
        finally:
            shutil.rmtree(directory, ignore_errors=True)    # the parent may have been killed
    except BaseException as error:
        print(f"weft lab place: {in_one_line(error)}", file=sys.stderr, flush=True)
        return 1


def _guard(child, output):
    """Waits for the lab's process; returns the exit status."""
    def pass_on(number, _):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in SIGNALS:
        signal.signal(number, pass_on)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        with contextlib.suppress(OSError):
            # The lab's process may have written a part of a line.
            output.write(b"\n" + channel.encode({"failed": f"its session {exit_in_words(status)}", "incomplete": []}))
            output.flush()
    _wait_for_orphans()
    return status if status >= 0 else 1
