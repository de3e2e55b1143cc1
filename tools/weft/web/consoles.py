# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Serves the console output of a guest, as `weft lab console` shows it. The process of `weft lab up` reports the path of the guest's console log, and
only a log that belongs to this lab is opened."""
import asyncio
import json
import os
import pathlib
import re
import stat

MOST = 64 << 10             # maximum number of bytes in one answer; the latest are sent
AT_ONCE = 4                 # maximum number of requests to the lab's process
ANSWER_TIMEOUT = 5          # seconds
LONGEST_ANSWER = 16 << 10   # bytes

# Escape sequences of terminals, and other invisible characters, such as those that change the text direction.
SEQUENCES = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]{0,256}(?:\x07|\x1b\\\\)|[@-_])?")
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class NoConsole(Exception):
    """The console cannot be served; the message is the reason."""


def cleaned(data):
    text = SEQUENCES.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
    return UNSEEN.sub("\ufffd", text)


class Consoles:
    """The consoles of the guests that `weft lab up` started in a socket directory."""

    def __init__(self, directory):
        self._directory = directory
        self._asking = asyncio.Semaphore(AT_ONCE)

    def there(self):
        return (self._directory / "lab.sock").is_socket()

    async def read(self, host, after):
        """Returns the text after the byte `after` of a host's console, or its end if that is more than MOST bytes away; {"from", "to", "text"}."""
        async with self._asking:
            try:
                path = await asyncio.wait_for(self._path_of(host), ANSWER_TIMEOUT)
            except (OSError, ValueError, asyncio.TimeoutError):
                raise NoConsole("no guest of this lab has been started by `weft lab up`") from None
        return self._piece(pathlib.Path(path), host, after)

    async def _path_of(self, host):
        reader, writer = await asyncio.open_unix_connection(str(self._directory / "lab.sock"), limit=LONGEST_ANSWER)
        try:
            writer.write(json.dumps({"log": host}).encode() + b"\n")
            answer = json.loads(await reader.readline())
        finally:
            writer.close()
        if not isinstance(answer, dict) or not isinstance(path := answer.get("path"), str):
            raise NoConsole(f"{host} has no guest with a console")
        return path

    def _piece(self, path, host, after):
        # The file must belong to the lab: it must be a regular file and not a link, and be owned by the same user.
        if path.name != f"{host}.log" or not path.is_absolute():
            raise NoConsole(f"{host} has no console")
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.getuid(), self._directory.stat().st_uid):
                    raise NoConsole(f"{path} is not a console of this lab")
                begin = max(after if after <= status.st_size else 0, status.st_size - MOST)
                file.seek(begin)
                data = file.read(MOST)
        except OSError as error:
            raise NoConsole(f"{path}: {error.strerror}") from None
        return {"from": begin, "to": begin + len(data), "text": cleaned(data)}
