# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft lab join`, which serves one control socket for the weftds of a lab that the user has started (`weftd --place`), and `weft lab pipe`,
which connects standard input and output to the control socket of a weftd, so that `weft lab join` can reach it through ssh or kubectl."""
import contextlib
import os
import pathlib
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import place_plan
import serving
import whole
from channel import Closed
from lab.errors import LabError, printable
from labs import interruption, program_in_same_directory
from weftd_process import is_served

START_TIME = 30         # seconds until all weftds must answer
MOST_IDLE = 4           # connections to each weftd that are kept for the next clients
PIECE = 1 << 16         # bytes


class SocketConnection:
    """A connection to a weftd of this host."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self.send = self._socket.sendall
        self.line = whole.Reader(self).line

    def receive(self):
        return self._socket.recv(PIECE)

    def end(self):
        """Sends no more data."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)     # a thread that waits for an answer gets none
        self._socket.close()


class CommandConnection:
    """A connection to a weftd through the standard input and output of a command. The command's errors go to standard error."""

    def __init__(self, words):
        # Ctrl-C must not end the command before this program does.
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)
        self._reader = whole.Reader(self)
        self._output = select.poll()
        self._output.register(self._process.stdout, select.POLLIN)
        self.reusable = True    # no answer is outstanding

    def receive(self):
        return self._process.stdout.read(PIECE)

    def send(self, data):
        self.reusable = False
        view = memoryview(data)
        while view:
            view = view[self._process.stdin.write(view):]

    def line(self, most):
        line = self._reader.line(most)
        self.reusable = bool(line)
        return line

    def is_idle(self):
        """Returns whether the next line will be the answer to the next request: no answer is outstanding, and the command has neither printed anything
        else nor closed its output, as when its weftd ends."""
        return self.reusable and self._reader.is_empty() and not self._output.poll(0)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)    # with its children
        self._process.wait()
        # A thread that waits for an answer has got none now, because the process has ended; only then may its pipe be closed.
        self._process.stdin.close()


class Kept:
    """A connection of one client, which returns to its place if another client can use it."""

    def __init__(self, place, connection):
        self._place = place
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = False
        self.reusable = True
        self.line = connection.line

    def send(self, data):
        with self._lock:
            # Another client may have the connection now.
            if self._closed:
                raise Closed
            self._connection.reusable = False
        self._connection.send(data)

    def close(self):
        with self._lock:
            closed, self._closed = self._closed, True
            self._connection.reusable &= self.reusable
        if not closed:
            self._place.take_back(self._connection)


class Place:
    """A place whose weftd the user has started. where: the directory of its control socket on this host, or a command whose standard input and output are
    connected to its control socket."""

    def __init__(self, plan, where, captures):
        self.name, self.plan = plan.name, plan
        self.host = printable(where)
        self.words = None if os.path.isdir(where) else shlex.split(where)
        self._where = pathlib.Path(where)
        self._captures = captures
        self._lock = threading.Lock()
        self._idle = []
        self._running = set()       # all connections through commands
        self._closed = False

    def label(self):
        return f"place {self.name}"

    @property
    def remote_logs(self):
        if self.words:
            raise whole.Refused(f"{self.label()}: it is reached through a command, so its captures cannot be copied: run `weft capture` on its host")
        return self._captures

    def fetch(self, name, remove=False, limit=None):
        """Returns the path of a finished capture."""
        path = self._captures / name
        return path if path.exists() else None

    def open_control(self):
        if not self.words:
            return SocketConnection(self._where / serving.CONTROL)
        with self._lock:
            idle, self._idle = self._idle, []
            usable = [each for each in idle if each.is_idle()]
            connection = usable.pop() if usable else None
            self._idle = usable
        for each in idle:
            if each is not connection and each not in usable:
                self._end(each)
        return Kept(self, connection or self._start())

    def _start(self):
        connection = CommandConnection(self.words)
        with self._lock:
            self._running.add(connection)
            closed = self._closed
        if closed:
            self._end(connection)
            raise Closed
        return connection

    def _end(self, connection):
        """Ends the command of a connection once."""
        with self._lock:
            known = connection in self._running
            self._running.discard(connection)
        if known:
            connection.close()

    def take_back(self, connection):
        with self._lock:
            kept = not self._closed and len(self._idle) < MOST_IDLE and connection.is_idle()
            if kept:
                self._idle.append(connection)
        if not kept:
            self._end(connection)

    def close(self):
        """Ends all commands, also those of clients that are still there."""
        with self._lock:
            self._closed = True
            running = list(self._running)
            self._idle = []
        for connection in running:
            self._end(connection)


def _places(args, captures):
    """Returns the places of the lab file, at which the words NAME=WHERE say how their weftds are reached."""
    plans = {plan.name: plan for plan in place_plan.make_plan(program_in_same_directory(args.weftd), args.lab, args.places or 0)}
    where = {}
    for word in args.words:
        name, equals, value = word.partition("=")
        if not equals or not value.strip():
            raise LabError(f"'{word}' is not PLACE=DIRECTORY or PLACE=COMMAND")
        if name not in plans:
            raise LabError(f"{args.lab} has no place {name}: it has {', '.join(plans)}")
        if name in where:
            raise LabError(f"the place {name} is given twice")
        where[name] = value
    if missing := [name for name in plans if name not in where]:
        raise LabError(f"it is not given how to reach the weftd of {', '.join(missing)}", f"an example is '{missing[0]}=ssh HOST weft --socket-dir DIR lab pipe'")
    try:
        places = [Place(plan, where[name], captures) for name, plan in plans.items()]
    except ValueError as error:
        raise LabError(f"a command is not understood: {error}") from None
    for place in places:
        if place.words and not shutil.which(place.words[0]):
            raise LabError(f"{place.label()}: '{place.words[0]}' is neither a directory nor a program", "create the socket directory, or name a program that PATH finds")
        if not place.words and os.path.realpath(where[place.name]) == os.path.realpath(args.socket_dir):
            raise LabError(f"{place.label()}: its directory is the one that weft lab join would serve", "choose another --socket-dir")
    return places


def _await_answers(topology):
    """Asks each weftd once, because the first connection through a command may take longer than a client waits; reports those that do not answer."""
    view = whole.View(topology)
    try:
        pending = {place: member.begin({"command": "fabric.sample"}) for place, member in view.members.items()}
        end = time.monotonic() + START_TIME
        for place, each in pending.items():
            if not each.done.wait(max(0, end - time.monotonic())):
                reason = f"it has not answered within {START_TIME} s"
            else:
                reason = each.missing or each.refused
            if reason:
                print(printable(f"weft lab join: {place.label()} ({place.host}): {reason}"), file=sys.stderr)
    finally:
        view.close()


def _check_unserved(path):
    if is_served(path):
        raise LabError(f"another weftd serves {path.parent}", "end it, or choose another --socket-dir")


def join(args):
    """Serves the control socket until a signal ends this."""
    path = args.socket_dir / serving.CONTROL
    _check_unserved(path)
    captures = pathlib.Path(tempfile.mkdtemp(prefix="weft-captures-"))
    places, sockets = [], None
    try:
        places = _places(args, captures)
        topology = whole.Topology(places)
        _await_answers(topology)
        _check_unserved(path)       # by a program that was started in the meantime
        args.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        sockets = whole.Socket(path, whole.MOST_CLIENTS, lambda client: whole.serve_client(topology, client))
        print(f"weft lab join: serves {args.socket_dir} until Ctrl-C", flush=True)
        while True:
            interruption.check()
            time.sleep(1)
    except KeyboardInterrupt:
        return 0
    finally:
        if sockets:
            sockets.close()
        for place in places:
            place.close()
        shutil.rmtree(captures, ignore_errors=True)


def pipe(args):
    """Passes standard input on to the control socket, and its answers to standard output, until weftd closes the connection."""
    try:
        connection = SocketConnection(args.socket_dir / serving.CONTROL)
    except OSError as error:
        raise LabError(f"no weftd serves {args.socket_dir} ({os.strerror(error.errno)})", "name its --socket-dir") from None

    def read():
        with contextlib.suppress(OSError):
            while data := os.read(0, PIECE):
                connection.send(data)
        connection.end()
    threading.Thread(target=read, daemon=True).start()
    while data := connection.receive():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return 0
