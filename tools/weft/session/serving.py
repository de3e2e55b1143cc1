# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A lab in the background, and the socket by which commands reach its machines: `weft lab up`, `shell` and `down`.

The socket DIR/lab.sock speaks one JSON object a line: {"host", "command"}, {"settle": [HOST...]} or {"down": true} from a client; {"out"} and {"err"}
with text, then {"status"} or {"error"}, to it.
"""
import contextlib
import json
import os
import queue
import shlex
import signal
import socket
import sys
import threading

from lab import DeadlineExceeded, GuestDied
from lab.errors import LabError
from lab.waiting import wait_until
from labs import Lab

# A shell's lines run each by itself; the folder is kept between them.
LINE = 'cd "$(cat /run/lab-folder 2>/dev/null || echo /root)"\n{line}\nstatus=$?; pwd >/run/lab-folder; exit $status'
IS_UP = "up"


def request(directory, message):
    """Sends a message to the lab's process and yields its answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(directory / "lab.sock"))
        except OSError:
            raise LabError(f"no lab is up in {directory}", "`weft lab up` starts one") from None
        client.sendall(json.dumps(message).encode() + b"\n")
        for line in client.makefile("rb"):
            yield json.loads(line)


def quietly(send):
    """send() for what goes on when the client has gone."""
    def call(**message):
        with contextlib.suppress(OSError):
            send(**message)
    return call


class Server:
    """Gives clients of a socket what they ask of a lab."""

    def __init__(self, lab, path):
        self.lab = lab
        self.path = path
        self.done = threading.Event()
        self.lock = threading.Lock()  # a guest takes requests from one thread at a time
        self.to_settle = queue.SimpleQueue()  # (hosts whose card is another, send, event): machines are started on the main thread
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen()

    def serve(self):
        """Until a client says so, or weftd ends."""
        threading.Thread(target=self.accept, daemon=True).start()
        while not self.done.is_set() and self.lab.alive():
            try:
                asked = self.to_settle.get(timeout=1)
            except queue.Empty:
                continue
            if not asked:
                break
            replaced, send, settled = asked
            try:
                self.lab.settle(replaced, lambda text: send(err=f"{text}\n"))
                send(status=0)
            except (GuestDied, DeadlineExceeded, LabError) as error:
                send(error=str(error))
            finally:
                settled.set()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            def send(**message):
                client.sendall(json.dumps(message).encode() + b"\n")

            try:
                message = json.loads(client.makefile("rb").readline())
                if message.get("down"):
                    self.done.set()
                    self.to_settle.put(None)
                    return send(status=0)
                if "settle" in message:
                    settled = threading.Event()
                    self.to_settle.put((message["settle"], quietly(send), settled))
                    settled.wait()
                    return None
                if message["host"] not in self.lab.guests:
                    return send(error=f"there is no host {message['host']}; there is {', '.join(self.lab.guests)}")
                self.run(self.lab.guests[message["host"]], message["command"], send)
            except (GuestDied, DeadlineExceeded, LabError) as error:
                send(error=str(error))
            except OSError:
                pass  # the client has gone

    def run(self, guest, command, send):
        with self.lock:
            process = guest.spawn(command)

        def pass_on():
            for name, data in zip(("out", "err"), process.drain()):
                if data:
                    send(**{name: data.decode(errors="replace")})
            return process.status is not None

        try:
            guest.wait_for_event("the command's end", pass_on, 1e6)
        except OSError:
            with self.lock:
                process.kill()
            raise
        send(status=process.status)


def up(args, machine):
    path = args.socket_dir / "lab.sock"
    if path.exists():
        try:
            next(request(args.socket_dir, {"host": "", "command": ""}))
        except LabError:
            path.unlink()
        else:
            raise LabError(f"a lab is up in {args.socket_dir} already", "`weft lab down` ends it")
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return _wait_until_up(reader, child)
    os.close(reader)
    os.setsid()
    signal.signal(signal.SIGTERM, _leave)
    with os.fdopen(writer, "w", buffering=1) as told:
        lab = Lab(args.socket_dir, args.logs or args.socket_dir, args.weftd, args.lab, machine, args.bare,
                  lambda text: told.write(f"{text}\n"))
        try:
            lab.up()
            server = Server(lab, path)
        except Exception as error:
            lab.close()
            told.write(f"weft lab: {error}\n")
            return 1
        except BaseException:
            lab.close()
            raise
        told.write(f"{IS_UP}\n")
    with open(os.devnull, "r+") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    try:
        server.serve()
    finally:
        path.unlink(missing_ok=True)
        lab.close()
    return 0


def _leave(*_):
    sys.exit(0)


def _wait_until_up(reader, child):
    """The one that was called: it ends when the lab is up, or has failed and said why. Ctrl-C ends the lab that is not up yet."""
    try:
        with os.fdopen(reader) as told:
            for line in told:
                if line.rstrip("\n") == IS_UP:
                    return 0
                print(line, end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    return 1


def settle(args):
    """After `weft lab apply`: machines start and end as hosts did."""
    return _pass_on(args, {"settle": args.replaced})


def run_command(args, command):
    return _pass_on(args, {"host": args.host, "command": command})


def _pass_on(args, message):
    for answer in request(args.socket_dir, message):
        sys.stdout.write(answer.get("out", ""))
        sys.stdout.flush()
        sys.stderr.write(answer.get("err", ""))
        if "error" in answer:
            raise LabError(answer["error"])
        if "status" in answer:
            return answer["status"]
    raise LabError("the lab has ended")


def shell(args):
    if args.command:
        return run_command(args, shlex.join(args.command) if len(args.command) > 1 else args.command[0])
    status = 0
    while True:
        try:
            line = input(f"{args.host}# " if sys.stdin.isatty() else "")
        except EOFError:
            return status
        except KeyboardInterrupt:
            print()
            continue
        if line.strip() in ("exit", "logout"):
            return status
        if line.strip():
            try:
                status = run_command(args, LINE.format(line=line))
            except KeyboardInterrupt:
                print()


def down(args):
    for _ in request(args.socket_dir, {"down": True}):
        pass
    wait_until("the lab to end", lambda: not (args.socket_dir / "control.sock").exists(), 30)
    return 0
