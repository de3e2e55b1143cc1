# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab in the background, and serves the socket through which commands reach its guests: `weft lab up`, `shell`, `restart`, `console`, `check`,
`upgrade` and `down`.

A client of the socket DIR/lab.sock sends one line with a JSON object, which is a request:

    {"settle": [HOST...]}       starts and stops guests after hosts were added and removed, and restarts these guests
    {"restart": [HOST...]}      restarts these guests
    {"log": HOST}               requests the path of the guest's console output
    {"check": true}             requests kernel reports and exits of guests and weftd since the last check
    {"upgrade": PROGRAM or null}    replaces weftd
    {"down": true}              ends the lab

The answer consists of JSON objects, one per line: any number of {"err"} with a text, and then {"status"}, or for "log" {"path"}, or {"error"}.
{"path"} has {"copy": true} if the file is a copy of a file on another host; the next request for it extends the copy.

The request {"host", "words", "terminal": [ROWS, COLUMNS] or null, "environment"} runs a command. After it, both sides exchange frames of the guest's
agent (lab/process.py) with the number 0. The client sends input, resize and kill. It receives out, err and consumed, and finally exit, or FAILED with
the reason. If a client disconnects, its command gets SIGHUP.
"""
import contextlib
import errno
import json
import os
import queue
import select
import shlex
import signal
import socket
import struct
import sys
import threading
import time

import streams
from lab import DeadlineExceeded, GuestDied
from lab.errors import LabError, in_one_line, printable
from lab.process import CONSUMED, ERR, EXIT, HEADER, INPUT, KILL, OUT, RESIZE, SIZE, BadFrame, InputWindow, read_frame
from lab.waiting import wait_until
from labs import Stopping, interruption, no_host, program_in_same_directory
from running import GUEST_DIED, KERNEL_REPORT, REFUSED, crash_of, incomplete_logs, make_lab
from streams import Terminal
from weftd_process import END_TIMEOUT, is_served

FOLLOW_INTERVAL = 0.5   # seconds between two checks of a console's file
RETRY_SECONDS = 0.1     # seconds until a client is accepted again after a failure
OUTPUT_PIECE = 64 << 10     # bytes of output in one frame
FAILED = 32     # a frame with the reason why there is no exit status
IS_UP = "\0up"      # no text that is reported contains this, because printable() replaces control characters
SOCKET, CONTROL = "lab.sock", "control.sock"
KILLED = "its process was killed"
# Contains the reason why the last lab of the directory stopped, unless a client requested it.
ENDED = "lab-ended"
LOG = "lab.log"         # events of weftd
MOST_MESSAGES = 100     # for one check
WAKE = object()


def _read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


class NoLab(LabError):
    """No lab is up in a directory."""

    def __init__(self, directory):
        ended = _read(directory / ENDED)
        if not ended and (directory / SOCKET).exists():
            ended = KILLED      # any other end removes the socket
        super().__init__(f"no lab is up in {directory}" + (f", since {ended}" if ended else ""), "`weft lab up` starts one")


def _disconnected(directory):
    """Returns the error to raise after the lab's process has closed a connection too early."""
    if is_served(directory / SOCKET):
        return LabError(f"the lab in {directory} closed the connection before it answered", "try again")
    return NoLab(directory)


def _not_understood(directory):
    return LabError(f"the answer from {directory / SOCKET} is not a lab's", "end the program that serves it, or choose another --socket-dir")


def _connect(client, directory):
    try:
        client.connect(str(directory / SOCKET))
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        raise NoLab(directory) from None
    except OSError as error:
        raise LabError(f"{directory / SOCKET}: {in_one_line(error)}") from None


def request(directory, message):
    """Sends a message to the lab's process and yields its answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        _connect(client, directory)
        stream = client.makefile("rb")
        try:
            client.sendall(json.dumps(message).encode() + b"\n")
            while (line := stream.readline()).endswith(b"\n"):
                answer = json.loads(line)
                if not isinstance(answer, dict):
                    raise _not_understood(directory)
                yield answer
        except (ValueError, RecursionError):
            raise _not_understood(directory) from None
        except ConnectionError:
            raise _disconnected(directory) from None


def quietly(send):
    """send() for events that occur when the client has disconnected."""
    def call(**message):
        with contextlib.suppress(OSError):
            send(**message)
    return call


class Server:
    """Serves requests for a lab on a socket."""

    def __init__(self, lab, path, logs_wanted=False):
        """logs_wanted: the user has given a directory for the logs, so an incomplete one is a failure."""
        self.lab = lab
        self.path = path
        self.logs_wanted = logs_wanted
        self.incomplete = []        # guests whose consoles a check() has reported as incomplete
        self.done = lab.stopping
        self.checking = threading.Lock()
        # (Lab.settle, restart or upgrade, its argument, send, event), because processes are started on the main thread; WAKE
        self.changes = queue.SimpleQueue()
        self.messages = []      # messages about weftd for the next check()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen()

    def close(self):
        """Removes the socket."""
        self.path.unlink(missing_ok=True)

    def serve(self):
        """Serves until a client stops the lab, or until weftd has exited and is not started again; returns the reason in the latter case."""
        try:
            return self._serve()
        except Stopping:
            return None

    def _serve(self):
        self.lab.weftd.notify = lambda: self.changes.put(WAKE)
        threading.Thread(target=self.accept, daemon=True).start()
        while not self.done.is_set() and not interruption.came:
            try:
                self.lab.look_after(self.note)
            except (DeadlineExceeded, LabError) as error:
                return str(error)
            try:
                asked = self.changes.get(timeout=1)
            except queue.Empty:
                continue
            if asked is WAKE:
                continue
            if not asked:
                break
            change, hosts, send, changed = asked
            try:
                change(hosts, lambda text: send(err=f"{text}\n"))
                send(status=0)
            except (GuestDied, DeadlineExceeded, LabError) as error:
                send(error=str(error))
            finally:
                changed.set()

        return None

    def note(self, text):
        """Stores a message for the log, and for the next check()."""
        with self.checking:
            self.messages = [*self.messages, text][-MOST_MESSAGES:]
        with contextlib.suppress(OSError), open(self.lab.logs / LOG, "a") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(text)}\n")

    def accept(self):
        """Accepts clients until the listener is shut down. A client that gets no descriptor or thread does not end the lab's service."""
        while not self.done.is_set():
            try:
                client, _ = self.listener.accept()
            except OSError as error:
                if error.errno in (errno.EBADF, errno.EINVAL):
                    return
                # For example EMFILE: the client waits in the socket's queue until another one has disconnected.
                self.done.wait(RETRY_SECONDS)
                continue
            try:
                threading.Thread(target=self.answer, args=(client,), daemon=True).start()
            except RuntimeError:
                client.close()

    def answer(self, client):
        with client:
            def send(**message):
                client.sendall(json.dumps(message).encode() + b"\n")

            try:
                stream = client.makefile("rb")
                message = json.loads(stream.readline())
                if message.get("down"):
                    self.report_logs(quietly(send))     # before this process may exit
                    self.done.set()
                    self.changes.put(None)
                    return None
                for name in ("settle", "restart", "upgrade"):
                    if name in message:
                        return self.change(getattr(self.lab, name), message[name], quietly(send))
                if "log" in message:
                    return self.find_log(message["log"], send)
                if "check" in message:
                    return self.check(quietly(send))
                self.run(client, stream, message)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
                pass  # the client has disconnected, or sends an unknown request

    def change(self, change, hosts, send):
        changed = threading.Event()
        self.changes.put((change, hosts, send, changed))
        changed.wait()

    def check(self, send):
        """Sends what kernels have reported since the last check, which guests have exited, and whether weftd has. The status is that of `weft run`."""
        status = 0
        with self.checking:
            for text in self.messages:
                send(err=f"{printable(text)}\n")
                status = GUEST_DIED
            self.messages = []
            for guest in list(self.lab.guests.values()):
                if guest.alive():
                    with contextlib.suppress(GuestDied, DeadlineExceeded):
                        guest.sync_log()
                found = guest.new_reports()
                if not guest.alive():
                    send(err=f"{guest.name} has ended\n")
                    status = status or GUEST_DIED
                if found:
                    send(err=f"the kernel of {guest.name} reported:\n" + printable("\n".join(found)) + "\n")
                    status = KERNEL_REPORT
            for guest, text in incomplete_logs(list(self.lab.guests.values())):
                if any(guest is reported for reported in self.incomplete):
                    continue
                self.incomplete.append(guest)
                send(err=f"{printable(text)}\n")
                status = status or (REFUSED if self.logs_wanted else 0)
        send(status=status)

    def report_logs(self, send):
        """Answers a request to end the lab: which consoles are incomplete, and status 1 if the user wanted them."""
        incomplete = incomplete_logs(list(self.lab.guests.values()))
        for _, text in incomplete:
            send(err=f"{printable(text)}\n")
        send(status=REFUSED if incomplete and self.logs_wanted else 0)

    def find_log(self, host, send):
        try:
            send(status=0, path=str(self.lab.log_of(host).absolute()))     # --logs is relative to this process's directory
        except LabError as error:
            send(error=str(error))

    def run(self, client, stream, message):
        """Runs a command in a guest, with the client's input."""
        def send(kind, data):
            client.sendall(HEADER.pack(len(data), 0, kind) + data)

        guest = self.lab.guests.get(message["host"])
        if not guest:
            send(FAILED, str(no_host(message["host"], self.lab.guests)).encode())
            return
        try:
            process = guest.start_program(message["words"], message.get("terminal"), message.get("environment", ()))
            threading.Thread(target=self.listen, args=(stream, process), daemon=True).start()
            self.report(guest, process, send)
        except GuestDied as error:
            # The rest is the end of its console.
            what, _, _ = str(error).partition("\n")
            send(FAILED, f"{what}{self.remedy(guest)}".encode())
        except DeadlineExceeded as error:
            send(FAILED, str(error).encode())

    def remedy(self, guest):
        """Returns text that is appended to the message about a guest that has exited."""
        return "" if guest.closed() else f": `weft lab console {guest.name}` shows why, `weft lab restart {guest.name}` starts it again"

    @staticmethod
    def report(guest, process, send):
        """Sends a command's output and the bytes that it has consumed, until it exits; the command is killed if the client disconnects."""
        taken, ended = 0, False
        try:
            while not ended:
                guest.wait_for_event("the command's end", lambda: process.is_ready() or process.window.taken != taken, 1e6)
                ended = process.status is not None
                if process.window.taken != taken:
                    taken = process.window.taken
                    send(CONSUMED, struct.pack("<I", taken))
                # The guest's lock is not held, because a client may be slow. More than one frame may be pending.
                for kind, data in zip((OUT, ERR), process.drain()):
                    for begin in range(0, len(data), OUTPUT_PIECE):
                        send(kind, data[begin:begin + OUTPUT_PIECE])
            send(EXIT, struct.pack("<I", process.status))
        except OSError:
            process.abandon()
            raise

    @staticmethod
    def listen(stream, process):
        """Passes a client's input on to its command, until the client disconnects, which hangs up the command, or violates the protocol."""
        try:
            while frame := read_frame(stream):
                _, kind, data = frame
                if kind == INPUT and len(data) <= process.window.space():
                    process.give(data)
                elif kind == RESIZE:
                    process.resize(*SIZE.unpack(data))
                elif kind == KILL:
                    process.kill(struct.unpack("<I", data)[0])
                else:
                    break
        except (OSError, ValueError, BadFrame, struct.error):
            pass
        except (GuestDied, DeadlineExceeded):
            return
        if process.status is None:
            with contextlib.suppress(GuestDied, DeadlineExceeded):
                process.kill(signal.SIGHUP)


def _clean_up(directory):
    """Removes the socket of a lab whose process was killed, and waits for its weftd, which the kernel terminates then (PR_SET_PDEATHSIG)."""
    (directory / SOCKET).unlink()
    print(f"weft lab: the former lab in {directory} has ended, since {KILLED}", file=sys.stderr, flush=True)
    with contextlib.suppress(DeadlineExceeded):     # the caller reports a weftd that still runs
        wait_until("the former weftd to end", lambda: not is_served(directory / CONTROL), END_TIMEOUT)


def up(args, settings, lab_of=make_lab, server_of=Server):
    """lab_of, server_of: replacements for other kinds of labs."""
    path = args.socket_dir / SOCKET
    if path.exists():
        if is_served(path):
            raise LabError(f"a lab is up in {args.socket_dir} already", "`weft lab down` ends it")
        _clean_up(args.socket_dir)
    (args.socket_dir / ENDED).unlink(missing_ok=True)
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return _wait_until_up(reader, child)
    os.close(reader)
    os.setsid()
    signal.signal(signal.SIGTERM, _leave)
    with os.fdopen(writer, "w", buffering=1) as progress:
        lab = lab_of(args.socket_dir, args.logs or args.socket_dir, args, settings, lambda text: progress.write(f"{printable(text)}\n"))
        try:
            lab.up()
            server = server_of(lab, path, args.logs is not None)
            for _, text in incomplete_logs(lab.guests.values()):
                progress.write(f"weft lab: warning: {printable(text)}\n")
        except Exception as error:
            lab.close()
            progress.write(f"weft lab: {printable(in_one_line(error))}\n")
            return 1
        except BaseException:
            lab.close()
            raise
        progress.write(f"{IS_UP}\n")
    with open(os.devnull, "r+") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    try:
        if why := server.serve():
            with contextlib.suppress(OSError):
                (args.socket_dir / ENDED).write_text(why)
    finally:
        server.close()
        lab.close()
    return 0


def _leave(*_):
    interruption.came = True    # Python drops the exit if a finalizer runs now
    sys.exit(0)


def _wait_until_up(reader, child):
    """Runs in the process that the user called. It exits when the lab is up, or has failed with a message. Ctrl-C stops a lab that is not up yet."""
    try:
        with os.fdopen(reader) as progress:
            for line in progress:
                if line.rstrip("\n") == IS_UP:
                    return 0
                print(printable(line), end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    return 1


def settle(args):
    """Called after `weft lab apply`: starts and stops guests for added and removed hosts."""
    return _pass_on(args, {"settle": args.words})["status"]


def restart(args):
    return _pass_on(args, {"restart": args.words})["status"]


def upgrade(args):
    """Without a program: the weftd in the directory of weft."""
    return _pass_on(args, {"upgrade": str(program_in_same_directory(args.weftd).absolute())})["status"]


def check(args):
    return _pass_on(args, {"check": True})["status"]


def console(args):
    """Prints a guest's console; with --follow, also later output, until Ctrl-C, the end of the lab, or the exit of the reader."""
    answer = _pass_on(args, {"log": args.host})
    path = answer.get("path")
    if not isinstance(path, str):
        raise _not_understood(args.socket_dir)
    with contextlib.suppress(KeyboardInterrupt):
        _print_console(args, path, answer.get("copy") is True)
    return 0


def _print_console(args, path, is_copy):
    """is_copy: the file is that of another host, and each request copies what is new."""
    reader = select.poll()
    reader.register(sys.stdout, 0)      # POLLERR: the reader has exited
    with open(path, "rb") as log:
        while True:
            while piece := log.read(OUTPUT_PIECE):
                # Control characters in the guest's text must not affect the caller's terminal.
                streams.write(printable(piece.decode(errors="replace").replace("\r\n", "\n")).encode() if sys.stdout.isatty() else piece, b"")
            if not args.follow or not is_served(args.socket_dir / SOCKET):
                return
            if any(events & select.POLLERR for _, events in reader.poll(FOLLOW_INTERVAL * 1000)):
                return
            if is_copy:
                with contextlib.suppress(NoLab):
                    _pass_on(args, {"log": args.host})


def _pass_on(args, message):
    """The last answer."""
    for answer in request(args.socket_dir, message):
        sys.stderr.write(str(answer.get("err", "")))
        if "error" in answer:
            raise LabError(str(answer["error"]))
        if isinstance(answer.get("status"), int):
            return answer
    raise _disconnected(args.socket_dir)


class Client:
    """The client's side of a command in a guest of a lab that is up."""

    def __init__(self, directory, host, words, terminal):
        self._directory = directory
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _connect(self._socket, directory)
        self._changed = threading.Condition()   # also held while a frame is sent
        self._window = InputWindow()
        self._ended = self._signalled = False
        request_line = {"host": host, "words": words, "terminal": Terminal.size() if terminal else None, "environment": Terminal.environment() if terminal else ()}
        try:
            self._socket.sendall(json.dumps(request_line).encode() + b"\n")
        except ConnectionError:
            raise _disconnected(directory) from None

    def _send(self, kind, data):
        with self._changed:
            self._socket.sendall(HEADER.pack(len(data), 0, kind) + data)

    def _give(self, data):
        self._window.give(len(data))
        self._send(INPUT, data)

    def resize(self, rows, columns):
        """Does nothing if the lab's process has exited, which run() detects."""
        with contextlib.suppress(OSError):
            self._send(RESIZE, SIZE.pack(rows, columns))

    def run(self):
        """Passes all data on until the command exits; returns its status. The first signal is sent to the command, and the second one stops the
        wait."""
        streams.feed(self._changed, self._window.space, lambda: self._ended, self._give)
        stream = self._socket.makefile("rb")
        with interruption.diverted(self._on_signal):
            while frame := self._next_frame(stream):
                _, kind, data = frame
                if kind in (OUT, ERR):
                    streams.write(data if kind == OUT else b"", data if kind == ERR else b"")
                elif kind == CONSUMED:
                    with self._changed:
                        self._window.take(struct.unpack("<I", data)[0])
                        self._changed.notify_all()
                elif kind == EXIT:
                    return struct.unpack("<I", data)[0]
                elif kind == FAILED:
                    raise LabError(data.decode(errors="replace"))
                else:
                    raise _not_understood(self._directory)
        raise _disconnected(self._directory)

    def _next_frame(self, stream):
        try:
            return read_frame(stream)
        except BadFrame:
            raise _not_understood(self._directory) from None
        except ConnectionError:
            raise _disconnected(self._directory) from None

    def _on_signal(self, number, _):
        """The first signal raises no exception, because half a frame may have been read."""
        if self._signalled:
            sys.exit(128 + number)
        self._signalled = True
        with contextlib.suppress(OSError):      # the lab's process has exited, which run() detects
            self._send(KILL, struct.pack("<I", number))

    def close(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._socket.close()


def shell(args):
    """Runs a command or a shell: on the caller's terminal an interactive one, otherwise one that reads commands from standard input."""
    terminal = Terminal.there()
    if args.words:
        words = ["bash", "-c", shlex.join(args.words) if len(args.words) > 1 else args.words[0]]
    else:
        words = ["bash", "-li"] if terminal else ["bash", "-s"]
    with contextlib.ExitStack() as stack:
        client = Client(args.socket_dir, args.host, words, terminal)
        stack.callback(client.close)
        if terminal:
            stack.enter_context(Terminal(client.resize))
        status = client.run()
    # An interactive shell, and one that reads commands, print this themselves.
    if args.words and (crash := crash_of(status)):
        print(f"weft lab shell: the command on {printable(args.host)} was ended by {crash}", file=sys.stderr)
    return status


def down(args):
    try:
        status = _pass_on(args, {"down": True})["status"]
    except NoLab:
        path = args.socket_dir / SOCKET
        if not path.exists() or is_served(path):
            raise
        _clean_up(args.socket_dir)
        status = 0
    try:
        wait_until("the lab to end", lambda: not is_served(args.socket_dir / CONTROL), 30)
    except DeadlineExceeded:
        raise LabError(f"a weftd still serves {args.socket_dir}", f"end it with `weft --socket-dir {args.socket_dir} shutdown`") from None
    return status
