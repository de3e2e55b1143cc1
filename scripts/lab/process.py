# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Commands in a guest: frames to and from its agent (agent/agent.cpp), over a virtio-serial port or a serial line."""
import re
import struct

HEADER = struct.Struct("<III")  # size, id, type
RUN, PUT, GET, KILL, EXECUTE, READY, OUT, ERR, EXIT, TAKEN = 1, 2, 3, 4, 5, 16, 17, 18, 19, 20

# A serial line's buffer is 4095 bytes, and the kernel must never find it full (agent.cpp says why). The agent tells of what it has taken in
# steps; what it has not told of yet is less than one.
LINE_STEP = 1024
LINE_MOST = 3 * LINE_STEP


class CommandFailed(Exception):
    """A command in a guest exited with a status other than 0."""


class Process:
    """A command that runs in a guest. `out` and `err` grow while it runs; `status` is None until it ended."""

    def __init__(self, guest, number, command):
        self.guest = guest
        self.command = command
        self.status = None
        self._number = number
        self._out = bytearray()
        self._err = bytearray()

    @property
    def raw(self):
        """Standard output so far, as bytes."""
        return bytes(self._out)

    @property
    def out(self):
        return self._out.decode(errors="replace")

    @property
    def err(self):
        return self._err.decode(errors="replace")

    def drain(self):
        """Takes what it has written since the last time, as bytes (output, errors), so that it is not kept. Called where wait_for_event() calls."""
        taken = bytes(self._out), bytes(self._err)
        self._out.clear()
        self._err.clear()
        return taken

    def wait(self, timeout=60, check=True):
        """Waits for its end. A status other than 0 raises CommandFailed unless check is False."""
        self.guest.wait_for_event(f"the end of `{self.command}`", lambda: self.status is not None, timeout)
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
        """Sends a signal to the command and its children, if it still runs."""
        self.guest.send(self._number, KILL, struct.pack("<I", signal))
        return self
