# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Records a guest's console: the output of its kernel and first programs, in a file on the host.

A guest may print without limit. If it is not trusted (`weft run`, `weft lab`), the file is bounded: a Recorder keeps its beginning and its
end, and limits the bytes per second.
"""
import os
import threading
import time

BEGINNING = 1 << 20     # bytes at the beginning that are kept
MOST = 8 << 20          # maximum size of the file in bytes
RATE = 4 << 20          # bytes per second; a faster guest has to wait
PIECE = 65536
OMISSION = b"\n[weft: %d bytes of the console are left out here]\n"


class Reader:
    """Reads the file of a console, from the end of the last read."""

    def __init__(self, path):
        self._path = path

    def end(self):
        """Returns the position after the last byte, for since()."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def text(self):
        """Returns all the text that is kept."""
        return self._path.read_text(errors="replace")

    def since(self, position, end=None):
        """Returns the text after a position, up to another one. If the file was shortened meanwhile, returns all the text that is kept."""
        with open(self._path, "rb") as file:
            if position > os.fstat(file.fileno()).st_size:
                position = 0
            file.seek(position)
            return file.read(-1 if end is None else max(0, end - position)).decode(errors="replace")


class Recorder:
    """Copies a pipe to a file of at most MOST bytes, in a separate thread, until all writers have closed the pipe."""

    def __init__(self, path):
        self.error = None       # the reason why the file is incomplete, for example a full disk; the rest of the console is dropped
        self._path = path
        self._size = self._omitted = 0
        reader, self.writer = os.pipe()
        self._file = open(path, "w+b", buffering=0)
        self._thread = threading.Thread(target=self._record, args=(reader,), daemon=True)
        self._thread.start()

    def close_writer(self):
        """Must be called after the guest was started, which has a copy of the descriptor."""
        os.close(self.writer)

    def join(self, timeout=5):
        """Waits until everything is in the file, after the guest has exited."""
        self._thread.join(timeout)

    def _record(self, reader):
        second, taken = time.monotonic(), 0
        with self._file, open(reader, "rb", buffering=0) as pipe:
            while data := pipe.read(PIECE):
                self._keep(data)
                taken += len(data)
                if time.monotonic() - second >= 1:
                    second, taken = time.monotonic(), 0
                elif taken >= RATE:
                    time.sleep(max(0.0, second + 1 - time.monotonic()))

    def _keep(self, data):
        if self.error:
            return
        try:
            self._write(data)
        except OSError as error:
            self.error = error.strerror

    def _write(self, data):
        if self._size + len(data) > MOST:
            self._shorten()
        self._file.write(data)
        self._size += len(data)

    def _shorten(self):
        """Shortens the file to its beginning and the second half of the rest."""
        self._file.seek(BEGINNING)
        rest = self._file.read()
        if self._omitted:
            rest = rest.partition(b" here]\n")[2]
        kept = rest[-(MOST - BEGINNING) // 2:]
        self._omitted += len(rest) - len(kept)
        self._file.seek(BEGINNING)
        self._file.truncate()
        self._file.write(OMISSION % self._omitted + kept)
        self._size = self._file.tell()
