# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Errors that are reported as one clear line: what is wrong, and what to do about it."""
import contextlib
import errno
import os
import signal
import sys


class LabError(Exception):
    """Something outside a test's subject is wrong: a package, the network, the disk, a broken cache."""

    def __init__(self, what, remedy=None):
        super().__init__(what if remedy is None else f"{what}: {remedy}")


@contextlib.contextmanager
def reported(program):
    """Turns the errors that a user can do something about into one line and exit status 1; SIGTERM ends as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except LabError as error:
        sys.exit(f"{program}: {error}")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        sys.exit(f"{program}: {error.filename or 'the disk'}: {os.strerror(error.errno)}: free some space "
                 "(the cache is $XDG_CACHE_HOME/weft, results are in build/), then run this again")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(f"{program}: interrupted")
