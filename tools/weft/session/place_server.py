# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Serves the socket of a lab over several hosts, and a control socket for each of its places."""
import contextlib
import json
import pathlib
import shutil
import socket
import threading

import channel
import serving
import whole
from channel import Closed
from lab.errors import LabError, in_one_line, printable
from lab.process import HEADER
from place_connection import MOST_ANSWER
from running import GUEST_DIED, REFUSED

MOST_ANSWER_OF_WEFTD = 64 << 20    # those of large fabrics are long
CONTROL_BACKLOG = 16


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
