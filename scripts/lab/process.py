# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs commands in a guest: exchanges frames with its agent (agent/agent.cpp), over a virtio-serial port or a serial line."""
import re
import struct

HEADER = struct.Struct("<III")  # size, id, type
RUN, PUT, GET, KILL, EXECUTE, START, INPUT, RESIZE = 1, 2, 3, 4, 5, 6, 7, 8
READY, OUT, ERR, EXIT, TAKEN, CONSUMED = 16, 17, 18, 19, 20, 21
BEGIN = struct.Struct("<IHH")   # Header of agent.cpp's start frame: kind of standard input; rows and columns of a terminal
SIZE = struct.Struct("<HH")
PIPE, TERMINAL = 1, 2

# A serial line has a buffer of 4095 bytes, which must never be full when the kernel reads it (for the reason, see agent.cpp). The agent reports what
# it has read in steps; what it has not reported is less than one step.
LINE_STEP = 1024
LINE_MOST = 3 * LINE_STEP

# The agent is under the guest's control, so it may send anything.
MOST_FRAME = 1 << 20        # bytes; agent.cpp sends at most 64 KiB, and a file for get() in several frames
MOST_OUTPUT = 64 << 20      # bytes of a command that are kept; the rest is dropped, and the command fails
MOST_UNREAD = 1 << 20       # unread bytes of a command whose output is drained, beyond which the guest waits
INPUT_MOST = 64 << 10       # bytes of a command's input that were sent to the agent and that the command has not read
INPUT_PIECE = 16 << 10      # bytes of input in one frame


class CommandFailed(Exception):
    """A command in a guest exited with a status other than 0."""


class BadFrame(Exception):
    """The guest's agent sent an invalid frame."""


def to_bytes(text):
    """Returns the UTF-8 of a text. Other bytes, which Python has decoded into surrogates, stay as they are."""
    return text.encode(errors="surrogateescape")


def read_frame(stream):
    """Returns (number, kind, data) of the next frame; None at the end of the stream. Raises BadFrame."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    size, number, kind = HEADER.unpack(header)
    if size > MOST_FRAME:
        raise BadFrame(f"a frame of {size} bytes")
    data = stream.read(size)
    if len(data) < size:
        return None
    if kind in (EXIT, TAKEN, CONSUMED) and size != 4:
        raise BadFrame(f"a frame of kind {kind} with {size} bytes")
    return number, kind, data


class InputWindow:
    """Limits the input of a command in transit: INPUT_MOST bytes that were sent and that the command has not read. Counts are modulo 2^32."""

    def __init__(self):
        self._given = 0
        self.taken = 0

    def _pending(self):
        return (self._given - self.taken) & 0xffffffff

    def space(self):
        return INPUT_MOST - self._pending()

    def give(self, size):
        self._given = (self._given + size) & 0xffffffff

    def take(self, count):
        """Handles the other side's report of the number of bytes read. A number that exceeds the bytes sent, or an old one, is ignored."""
        if (count - self.taken) & 0xffffffff <= self._pending():
            self.taken = count


class Process:
    """A command that runs in a guest. `out` and `err` grow while it runs; `status` is None until it has exited."""

    def __init__(self, guest, number, command):
        self.guest = guest
        self.command = command
        self.status = None
        self._number = number
        self._out = bytearray()
        self._err = bytearray()
        self._drained = False       # true if its output is read while it runs
        self._abandoned = False     # true if its output is not needed any more
        self._dropped = 0           # number of dropped bytes
        self.window = InputWindow()

    def take(self, kind, data):
        """Adds output. Called on the thread that reads the agent's frames, with the guest's lock."""
        if self._abandoned:
            return
        room = MOST_OUTPUT - len(self._out) - len(self._err)
        (self._out if kind == OUT else self._err).extend(data[:max(0, room)])
        self._dropped += max(0, len(data) - room)

    def give(self, data):
        """Sends input, at most as much as fits the window; after the command has exited it is dropped. b"" means end of file. Callable on any
        thread."""
        if self.status is None:
            self.window.give(len(data))
            self.guest.send(self._number, INPUT, data)

    def resize(self, rows, columns):
        """Sets the size of its terminal. Callable on any thread."""
        if self.status is None:
            self.guest.send(self._number, RESIZE, SIZE.pack(rows, columns))

    def is_full(self):
        """Returns whether the guest has to wait until its output is drained."""
        return self._drained and not self._abandoned and len(self._out) + len(self._err) >= MOST_UNREAD

    def is_ready(self):
        """Returns whether there is output, or the command has exited. After the first call, the output must be drained, and the guest waits for
        that."""
        self._drained = True
        return bool(self._out or self._err or self.status is not None)

    @property
    def raw(self):
        """Returns standard output so far, as bytes."""
        return bytes(self._out)

    @property
    def out(self):
        return self._out.decode(errors="replace")

    @property
    def err(self):
        return self._err.decode(errors="replace")

    def drain(self):
        """Returns the output since the last call, as bytes (output, errors), so that it is not kept."""
        with self.guest.changed:
            self._drained = True
            taken = bytes(self._out), bytes(self._err)
            self._out.clear()
            self._err.clear()
            self.guest.changed.notify_all()
            return taken

    def abandon(self):
        """Kills the command; its further output is dropped."""
        with self.guest.changed:
            self._abandoned = True
            self.guest.changed.notify_all()
        self.kill()

    def wait(self, timeout=60, check=True):
        """Waits until the command has exited. A status other than 0 raises CommandFailed unless check is False."""
        self.guest.wait_for_event(f"the end of `{self.command}`", lambda: self.status is not None, timeout)
        if self._dropped:
            raise CommandFailed(f"{self.guest.name}: `{self.command}` wrote {MOST_OUTPUT + self._dropped} bytes, of which {MOST_OUTPUT} are kept")
        if check and self.status != 0:
            raise CommandFailed(f"{self.guest.name}: `{self.command}` exited with status {self.status}\n"
                                f"{self.out[-4000:]}{self.err[-4000:]}".rstrip())
        return self

    def wait_output(self, pattern, timeout=30):
        """Waits until a pattern matches its output (standard output, or error); returns the match."""
        compiled = re.compile(pattern, re.MULTILINE)
        found = []

        def look():
            found[:] = [match for match in (compiled.search(self.out), compiled.search(self.err)) if match]
            return found or self.status is not None

        self.guest.wait_for_event(f"/{pattern}/ in the output of `{self.command}`", look, timeout)
        if not found:
            raise CommandFailed(f"{self.guest.name}: `{self.command}` ended with status {self.status} before its output had "
                                f"/{pattern}/\n{self.out[-2000:]}{self.err[-2000:]}".rstrip())
        return found[0]

    def kill(self, signal=9):
        """Sends a signal to the command and its children, if it is still running."""
        self.guest.send(self._number, KILL, struct.pack("<I", signal))
        return self
