# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Controls a virtual machine from the host by QEMU's monitor (QMP): hot-plug, link state, and other actions."""
import json

from lab.errors import LabError


class Monitor:
    """A client of QMP on a connected socket. The first command begins with the handshake."""

    def __init__(self, sock, timeout=60):
        sock.settimeout(timeout)
        self._socket = sock
        self._stream = sock.makefile("rw", encoding="utf-8")
        self._greeted = False

    def command(self, name, **arguments):
        """Executes a command; returns its result. Raises LabError with QEMU's message if it fails."""
        if not self._greeted:
            self._stream.readline()
            self._greeted = True
            self.command("qmp_capabilities")
        self._stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._stream.flush()
        while line := self._stream.readline():
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise LabError(f"QEMU refused {name}", answer["error"]["desc"])
        raise LabError(f"QEMU ended before it answered {name}")

    def close(self):
        self._stream.close()
        self._socket.close()
