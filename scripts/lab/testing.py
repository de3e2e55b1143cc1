# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs guest tests: functions in tests/guest/*.py anywhere in the tree, which run on the host.

    from lab.testing import test

    @test(kernels=("plain", "debug"))
    def modules_leave_nothing_behind(lab):
        '''The sentence that the test proves.'''
        with lab.guest("node1") as node1:
            node1.run("insmod /share/weft_kern.ko")
            assert node1.run("lsmod").out.count("weft_") == 1

A test fails by an exception. Each test runs in a process of its own with a time limit; everything it started is killed with it.
"""
import contextlib
import dataclasses
import importlib.util
import inspect
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from lab import cache, kernels, modules
from lab.errors import LabError
from lab.guest import Guest, boot, slowness
from lab.results import FAILED, PASSED, SKIPPED, Result
from lab.waiting import wait_until

MARK = "_weft_test"


FULL_FACTOR = 10      # factor of the time limit in a full run


def full():
    """Returns whether tests run all repetitions (scripts/test --full), and not only as many as a default run has time for."""
    return bool(os.environ.get("WEFT_FULL"))


class Skip(Exception):
    """The test cannot run here; the message is the reason."""


@dataclasses.dataclass(frozen=True)
class Options:
    kernels: tuple
    timeout: float
    also: tuple
    full_timeout: float

    def run_on(self, kernel, chosen):
        """Returns whether a test with these options runs on a kernel; chosen: whether tests were selected by their names."""
        return kernel in self.kernels or (chosen or full()) and kernel in self.also


def test(function=None, *, kernels=("plain", "debug"), timeout=180, also=(), full_timeout=None):
    """Marks a guest test. kernels: those on which it runs; also: further ones with --full or when selected by name, because it takes too long there;
    timeout: seconds for the whole test on a plain kernel; full_timeout: the same with --full, if it is not FULL_FACTOR times timeout."""
    def mark(wrapped):
        setattr(wrapped, MARK, Options(tuple(kernels), timeout, tuple(also), full_timeout or timeout * FULL_FACTOR))
        return wrapped
    return mark(function) if function else mark


class Lab:
    """Environment of a test: the kernel variant to use, guests, host programs, and a folder for its files."""

    def __init__(self, kernel, directory, seed):
        self.kernel = kernel
        self.directory = directory
        self.seed = seed
        self.random = random.Random(seed)
        self.slowness = slowness(kernel)
        self._sockets = tempfile.mkdtemp(prefix="weft-")    # a socket's path has at most 107 bytes
        self._stack = contextlib.ExitStack()

    def rounds(self, usual, thorough):
        """Returns the number of repetitions: usual in every run, thorough with `scripts/test --full`."""
        return thorough if full() else usual

    @property
    def modules(self):
        """Returns the directory of weft's modules for this kernel; a guest of lab.guest() sees it as /share."""
        return modules.directory(kernels.find(self.kernel))

    def guest(self, name="node1", **options):
        """Returns a Guest (not started) with this test's kernel, with the modules as its /share, and with its log among the test's files."""
        if modules.is_built(kernels.find(options.get("kernel", self.kernel))):
            options.setdefault("share", modules.directory(kernels.find(options.get("kernel", self.kernel))))
        return Guest(name, **{"kernel": self.kernel, "log": self.directory / f"{name}.log", **options})

    def boot(self, *guests):
        return boot(*guests)

    def socket_path(self, name):
        """Returns a short path for a Unix socket."""
        return pathlib.Path(self._sockets) / name

    def program(self, name):
        """Returns the path of a host program in build/bin."""
        path = cache.TREE / "build/bin" / name
        if not path.exists():
            raise LabError(f"{path} is missing", "run make tools")
        return path

    def start(self, *argv, until=None, timeout=20):
        """Starts a host program, killed at the test's end; its output goes to a log among the test's files.

        until: a condition to wait for (a function), for instance that its socket is there.
        """
        name = pathlib.Path(str(argv[0])).name
        log = self.directory / f"{name}.log"
        output = self._stack.enter_context(open(log, "ab"))
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, argv)], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   process_group=0)
        self._stack.callback(_end, process)

        def up():
            if process.poll() is not None:
                raise AssertionError(f"{name} ended with status {process.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
            return until()

        if until:
            wait_until(f"{name} to be up", up, timeout)
        return process

    def close(self):
        self._stack.close()
        subprocess.run(["rm", "-rf", self._sockets], check=False)


def _end(process):
    """Stops a host program, first by SIGTERM, because sanitizers and coverage report when it exits."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def discover():
    """Returns all (file, name, options) of guest tests in the tree."""
    found = []
    files = sorted(path for path in cache.TREE.glob("*/**/tests/guest/*.py") if "build" not in path.relative_to(cache.TREE).parts[:1])
    for path in files:
        for name, function in inspect.getmembers(load(path), inspect.isfunction):
            if hasattr(function, MARK):
                found.append((path, name, getattr(function, MARK)))
    return found


def load(path):
    """Loads a Python file as a module, which can import from its own directory."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


# The processes of running tests.
_running = set()
LEFT = 10       # seconds in which processes that a test has left may still exit by themselves


def _processes_of(temporary):
    """Returns the processes that were started by the test with this temporary folder, as {pid: command line}. Daemons of labs are in sessions of their
    own, but have the test's environment, in which the test may have set a folder below this one."""
    wanted = re.compile(rb"(?:^|\0)TMPDIR=" + re.escape(os.fsencode(temporary)) + rb"(?:/[^\0]*)?\0")
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        # A process may exit at any time, and a process that has exited has neither an environment nor a command line.
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and wanted.search((entry / "environ").read_bytes()):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def _end_processes_of(temporary, seconds):
    """Waits until the processes of a test have exited. Kills those that run after this time, and returns them."""
    deadline = time.monotonic() + seconds
    while (left := _processes_of(temporary)) and time.monotonic() < deadline:
        time.sleep(0.1)
    # A process that is killed may have started another one.
    remaining = left
    while remaining and time.monotonic() < deadline + LEFT:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        remaining = _processes_of(temporary)
    return left


def end_all():
    """Kills the running tests; their run_one() returns. Callable on any thread."""
    for child in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def run_one(path, name, options, kernel, seed):
    """Runs one test in a separate process; returns its Result. Callable on several threads."""
    directory = cache.TREE / "build/test" / kernel / path.stem / name
    subprocess.run(["rm", "-rf", directory], check=True)
    directory.mkdir(parents=True)
    result = Result(f"guest-{kernel}", f"{path.stem}.{name}", FAILED)
    outcome = directory / "outcome.json"
    limit = (options.full_timeout if full() else options.timeout) * slowness(kernel)
    started = time.monotonic()
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", "-m", "lab.testing", str(path), name, kernel, str(directory), str(seed)]
    # The temporary folder is removed even if the test is killed.
    with tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as temporary, open(directory / "output.txt", "wb") as output:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": str(cache.TREE / "scripts"), "TMPDIR": temporary})
        _running.add(child)
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            # The first signal makes the test print a trace and exit; the second one kills it.
            child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(20)
            result.detail = f"took more than {limit:g} s\n"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            _running.discard(child)
            passed = not result.detail and child.returncode == 0
            left = _end_processes_of(temporary, LEFT * slowness(kernel) if passed else 0)
    result.seconds = time.monotonic() - started
    if outcome.exists() and not result.detail:
        said = json.loads(outcome.read_text())
        result.outcome, result.detail = said["outcome"], said["detail"]
        if left and result.outcome == PASSED:
            result.outcome, result.detail = FAILED, "its processes were still running after its end:\n" + "\n".join(left.values())
    else:
        result.detail += (directory / "output.txt").read_text(errors="replace")[-6000:] or "it ended without an outcome"
    if result.outcome == FAILED:
        result.detail += f"\nseed {seed}; files in {directory.relative_to(cache.TREE)}"
    return result


def main():
    """Runs one test in the child process, and writes its result to a file."""
    path, name, kernel, directory, seed = sys.argv[1:]
    lab = Lab(kernel, pathlib.Path(directory), int(seed))
    outcome, detail = PASSED, ""
    try:
        getattr(load(pathlib.Path(path)), name)(lab)
    except Skip as reason:
        outcome, detail = SKIPPED, str(reason)
    except BaseException:
        outcome, detail = FAILED, traceback.format_exc()
    try:
        lab.close()
    except Exception:
        outcome, detail = FAILED, detail + traceback.format_exc()
    temporary = pathlib.Path(directory) / "outcome.new"
    temporary.write_text(json.dumps({"outcome": outcome, "detail": detail}))
    temporary.rename(pathlib.Path(directory) / "outcome.json")


if __name__ == "__main__":
    # The tests import this file as lab.testing; use that module, so that there is only one class Skip.
    from lab import testing
    testing.main()
