# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Caches results that are expensive to produce, under $XDG_CACHE_HOME/weft, by a key that is computed from their inputs.

An entry is written under a temporary name and renamed when it is complete, so an interrupted run leaves no partial entry. Concurrent runs wait for
each other.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from lab.errors import LabError

TREE = pathlib.Path(__file__).resolve().parents[2]


def root():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "weft"


def key_of(*parts):
    """Returns a key for strings and files (for a Path, the contents of the file)."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def locked_file(path, holder):
    """Holds the lock of a file, which is created if necessary. While another process holds it, prints that it waits for that holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {holder}", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def locked(name):
    """Holds the cache's lock with that name; waits while another process holds it."""
    try:
        root().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"the cache {root()} cannot be created ({error.strerror})", "let XDG_CACHE_HOME name a directory that you can write") from None
    return locked_file(root() / f".lock-{name}", f"another run that makes {name}")


def present(kind, key, product):
    """Returns whether the entry `kind`-`key` exists, with its main file."""
    path = root() / f"{kind}-{key}" / product
    return path.is_file() and path.stat().st_size > 0


def entry(kind, key, make, need_mib, product):
    """Returns the directory of the entry `kind`-`key`; make(directory) fills it if it does not exist.

    Older entries of the kind stay: another tree may be using them. need_mib: the free space that making it takes.
    product: the entry's main file; if it is missing (after a power cut, or because someone deleted it), the entry is made again.
    """
    path = root() / f"{kind}-{key}"
    if present(kind, key, product):
        return path
    with locked(kind):
        if present(kind, key, product):
            return path
        shutil.rmtree(path, ignore_errors=True)
        for leftover in root().glob(f".work-{kind}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        free = shutil.disk_usage(root()).free >> 20
        if free < need_mib:
            raise LabError(f"{root()} has {free} MiB free and {need_mib} MiB are needed for {kind}",
                           "free some space, or let XDG_CACHE_HOME point elsewhere")
        work = pathlib.Path(tempfile.mkdtemp(prefix=f".work-{kind}-", dir=root()))
        try:
            work.chmod(0o755)
            make(work)
            work.rename(path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return path


def keep_newest(kind, count):
    """Removes entries of a kind, the oldest first by the time of their directories, until this number is left. A process that has a file of an entry
    open can still use it."""
    with locked(kind):
        entries = sorted(root().glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in entries[count:]:
            shutil.rmtree(path, ignore_errors=True)


def output_of(*argv, remedy="run scripts/setup"):
    """Returns the output of a program as bytes; a failure becomes a LabError."""
    try:
        done = subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise LabError(f"the program {argv[0]} is missing", remedy) from None
    if done.returncode != 0:
        raise LabError(f"{argv[0]} failed ({done.stderr.decode(errors='replace').strip()})")
    return done.stdout


def tool(*argv, remedy=None, **options):
    """Runs a program; returns its output; a failure becomes a LabError with the output's last lines."""
    options.setdefault("stdin", subprocess.DEVNULL)
    # Add the directories with programs for administrators, which are not in every user's PATH.
    options.setdefault("env", {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"})
    try:
        done = subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    except FileNotFoundError:
        raise LabError(f"the program {argv[0]} is missing", "run scripts/setup") from None
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        tail = " / ".join(line for line in output.splitlines()[-6:] if line.strip())
        if "No space left" in output:
            remedy = "the disk is full: free some space"
        raise LabError(f"{argv[0]} failed ({tail})", remedy)
    return output
