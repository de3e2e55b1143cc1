# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Connects the caller's standard input and terminal to a command that runs in a guest."""
import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty

from lab import DeadlineExceeded, GuestDied
from lab.process import INPUT_PIECE


class Terminal:
    """The caller's terminal in raw mode: all keys, even Ctrl-C, are sent to the guest. Leaving the block restores the former mode."""

    def __init__(self, resized):
        """resized(rows, columns) is called on a thread of its own when the window changes."""
        self._resized = resized
        self._saved = None
        self._changes = None    # a pipe: a byte is written when the window changes

    @staticmethod
    def there():
        """Returns whether the command should have a terminal: input and output are the same terminal, and this is not a background job."""
        return os.isatty(0) and os.isatty(1) and in_foreground()

    @staticmethod
    def size():
        columns, rows = os.get_terminal_size(0)
        return rows, columns

    @staticmethod
    def environment():
        """Returns environment variables that describe the terminal to programs in the guest."""
        return (f"TERM={os.environ.get('TERM', 'dumb')}",)

    def __enter__(self):
        # The terminal is changed last, because __exit__() does not restore it if a step fails.
        changed, self._changes = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._changes, False)
        threading.Thread(target=self._report, args=(changed,), daemon=True).start()
        self._saved = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSANOW)
        signal.signal(signal.SIGWINCH, self._on_change)
        return self

    def __exit__(self, *_):
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        os.close(self._changes)
        with contextlib.suppress(termios.error):    # it was closed
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)

    def _on_change(self, *_):
        """Handles SIGWINCH. Takes no lock: while a user drags the edge of a window, the handler is interrupted by the next signal."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._changes, b"\0")

    def _report(self, changed):
        with open(changed, "rb", buffering=0) as pipe, contextlib.suppress(OSError, GuestDied, DeadlineExceeded):
            while pipe.read(select.PIPE_BUF):
                self._resized(*self.size())


def in_foreground():
    """Returns whether this process may read its terminal: a background job would be stopped. A terminal of another session stops no process."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True


def feed(changed, space, ended, give):
    """Passes standard input on, on a thread of its own, until it ends or the command exits. changed: a condition that is notified when space() or
    ended() may have changed; space(): number of bytes that can be sent now; give(bytes): sends them, and b"" at the end of the input."""
    def pump():
        try:
            data = b"" if os.isatty(0) and not in_foreground() else None
            while data != b"":
                with changed:
                    changed.wait_for(lambda: ended() or space() > 0)
                    if ended():
                        return
                    most = min(space(), INPUT_PIECE)
                data = os.read(0, most)
                if data:
                    give(data)
        except (OSError, GuestDied, DeadlineExceeded):
            pass    # the terminal or the guest was closed
        with contextlib.suppress(OSError, GuestDied, DeadlineExceeded):
            give(b"")

    threading.Thread(target=pump, daemon=True).start()


def write(out, err):
    """Writes a command's output unchanged."""
    for stream, data in ((sys.stdout, out), (sys.stderr, err)):
        if data:
            stream.buffer.write(data)
            stream.buffer.flush()
