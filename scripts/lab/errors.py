# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Defines errors that are reported as one line: what is wrong, and how to fix it."""
import contextlib
import errno
import os
import select
import signal
import sys


def printable(text):
    """Returns text that a guest may have chosen, for output on a terminal: control characters are replaced by their numbers, except line feeds and
    tabs (base/printable.hpp)."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="surrogatepass"))
                   for letter in text)


class LabError(Exception):
    """Something that is not under test has failed: a package, the network, the disk, a broken cache."""

    def __init__(self, what, remedy=None):
        super().__init__(what if remedy is None else f"{what}: {remedy}")


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)    # errors of a file system without space
# Remedies for errors of the operating system that concern no file.
REMEDIES = {
    errno.EMFILE: "raise the limit of open files with `ulimit -n`",
    errno.ENFILE: "the host has too many open files: end other programs",
    errno.ENOMEM: "free some memory of the host",
    errno.EAGAIN: "end other programs, or raise the limit of processes with `ulimit -u`",
}


def in_one_line(error):
    """Returns the text of an exception for users: for one from the operating system, the file, the reason and a remedy, without Python's notation."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return ": ".join(str(part) for part in (error.filename, error.strerror, REMEDIES.get(error.errno)) if part)


def exit_in_words(status):
    """Returns how a process ended, by its status in Python's notation: minus a signal's number if a signal killed it."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"    # a real-time signal


def output_is_closed():
    """Returns whether the reader of standard output or standard error has exited."""
    poller = select.poll()
    for number in (1, 2):
        poller.register(number, 0)      # POLLERR and POLLHUP are always reported
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poller.poll(0))


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived, which has the same effect as Ctrl-C."""


def _terminate(*_):
    raise Terminated


SIGNALLED = 128     # plus the signal's number, as shells report it


@contextlib.contextmanager
def reported(program):
    """Prints errors that a user can fix as one line, and exits with status 1; after Ctrl-C or SIGTERM, with 128 plus the signal's number."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except LabError as error:
        sys.exit(f"{program}: {printable(str(error))}")
    except BrokenPipeError as error:
        if not output_is_closed():
            sys.exit(f"{program}: {in_one_line(error)}: another program has closed a connection")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.errno not in FULL:
            raise
        sys.exit(f"{program}: {error.filename or 'the disk'}: {os.strerror(error.errno)}: free some space "
                 f"(the cache is {os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/weft, results are in build/), then run this again")
    except KeyboardInterrupt as interruption:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.exit(SIGNALLED + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT))
