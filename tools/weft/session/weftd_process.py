# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs weftd as a child process of weft-session: starts and watches it, restarts it after a crash, and replaces it by another version of weftd (`weft
lab upgrade`)."""
import contextlib
import os
import resource
import socket
import subprocess
import threading
import time

from keeping import Keeper
from lab.errors import LabError, exit_in_words
from lab.waiting import DeadlineExceeded, wait_until

STATE = "weftd-state.json"
MOST_RESTARTS = 10      # maximum number of consecutive weftds that exit within SOON; then it is not started again
SOON = 10               # seconds after it began to serve
MOST_LOGS = 10          # logs of weftds that have exited, of which the newest are kept
MOST_LINES = 15         # lines of a log in a message
START_TIMEOUT = 30      # seconds
END_TIMEOUT = 10
MOST_CORE = resource.getrlimit(resource.RLIMIT_CORE)[1]
CORE_PATTERN = "/proc/sys/kernel/core_pattern"


def is_served(path):
    """Returns whether a process accepts connections at a socket; the file outlives a process that was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


class Daemon:
    """Started and stopped on the main thread: the kernel kills weftd when the thread that started it exits (PR_SET_PDEATHSIG)."""

    def __init__(self, program, directory, logs, restart, bus="vfio-user", options=(), descriptors=()):
        directory, logs = directory.absolute(), logs.absolute()
        self.control = directory / "control.sock"
        self.log = logs / "weftd.log"
        self.notify = lambda: None      # called on another thread when weftd has exited
        self.restarts = 0               # all of them
        self.keeper = Keeper()
        self._program = program
        self._directory = directory
        self._dump = ""                 # where the core dump is of the weftd that has exited, in words; empty if there is none
        self._restart = restart
        self._bus = bus                 # default for hosts without a bus in the lab file
        self._options = list(options)           # more of weftd's, which it also gets when it is started again
        self._descriptors = list(descriptors)   # that weftd inherits
        self._lab_file = None
        self._process = None
        self._ended = threading.Event()
        self._started_at = 0.0          # the time of the clock, a little before its start
        self._served_since = 0.0        # time when the present weftd began to serve; 0: it does not serve yet
        self._ended_at = 0.0
        self._early_ends = 0            # in a row

    def start(self, lab_file):
        """Starts it with a new lab."""
        self._lab_file = lab_file and os.path.abspath(lab_file)
        for former in (self._directory / STATE, self.log.with_suffix(".core")):
            former.unlink(missing_ok=True)
        self._start()

    def start_again(self):
        """Starts weftd again after it has exited, with the same lab, links and faults; returns a message for the user. Raises LabError if it must not
        be started, or has exited too often soon after its start."""
        how = self._end_in_words()
        while True:
            # 0: stopped by `weft shutdown` or SIGTERM.
            if not self._restart or self._process.returncode == 0:
                raise LabError(self.how_it_ended())
            self._count_end()
            kept = self._keep_log()
            try:
                self._start()
            except (LabError, DeadlineExceeded):
                self.end()
                continue
            self.restarts += 1
            return (f"{how} and was started again; its log until then is {kept}. Counters start from zero, and captures, attached "
                    "programs and connections of guests are lost")

    def check_program(self, program):
        """Raises LabError if a program (None: the present one) cannot be executed or is not weftd."""
        program = program or self._program
        try:
            version = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=START_TIMEOUT, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LabError(f"{program} cannot be executed: {getattr(error, 'strerror', None) or error}") from None
        if not version.startswith(b"weftd "):
            raise LabError(f"{program} is not a weftd: with --version, it does not print the version of weftd")

    def replace(self, program):
        """Replaces weftd by a program (None: the same one), which continues its lab; returns a message. If that fails, the former program is started
        again, and LabError is raised."""
        before, self._program = self._program, program or self._program
        self.end()
        self._keep_log()
        try:
            self._start()
        except (LabError, DeadlineExceeded) as error:
            self.end()
            self._program = before
            self._start()
            raise LabError(f"{program or before} does not serve the lab: {error}", "the former weftd was started again") from None
        return f"weftd was replaced by {self._program}"

    def alive(self):
        return self._process is not None and not self._ended.is_set()

    def ends_soon(self):
        """Waits briefly for weftd to exit; returns whether it has. Its sockets close before that."""
        return self._ended.wait(END_TIMEOUT)

    def how_it_ended(self):
        """Returns a message with the signal or status with which weftd exited, and the path of its log."""
        return f"{self._end_in_words()}; its log is {self.log}"

    def _end_in_words(self):
        return f"weftd {exit_in_words(self._process.returncode)}{self._dump}"

    def end(self):
        if not self._process:
            return
        self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # The keeper must have read all records of this weftd before it reads those of the next one.
        self._ended.wait()

    def _start(self):
        self.control.unlink(missing_ok=True)     # left by a weftd that was killed
        # Distributions set the soft limit to 0. Without a path in core_pattern, the file is written to the working directory.
        command = ["prlimit", f"--core={'unlimited' if MOST_CORE == resource.RLIM_INFINITY else MOST_CORE}:"]
        command += ["setpriv", "--pdeathsig", "TERM", os.path.abspath(self._program), "--socket-dir", str(self._directory)]
        # weftd refuses a file that is not there. Once there is a state, it has the lab.
        if self._lab_file and not (self._directory / STATE).exists():
            command += ["--lab", self._lab_file]
        command += ["--bus", self._bus, "--state", str(self._directory / STATE), *self._options]
        self._started_at = time.time() - 1
        with open(self.log, "w") as log, self.keeper.open() as keeper:
            command += ["--keeper", str(keeper.fileno())]
            # Ctrl-C is for this program, which then stops its children.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0, pass_fds=[keeper.fileno(), *self._descriptors],
                                             cwd=self.log.parent)
        self._ended = threading.Event()
        threading.Thread(target=self._watch, args=(self._process, self._ended), daemon=True).start()
        self._served_since = 0.0
        wait_until("weftd to serve", self._serves, START_TIMEOUT)
        self._served_since = time.monotonic()

    def _watch(self, process, ended):
        try:
            # The process is not reaped here but by the Popen object, which does not report a core dump.
            dumped = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT).si_code == os.CLD_DUMPED
        except ChildProcessError:
            dumped = False      # end() was faster
        self._dump = self._take_core(process.pid) if dumped else ""
        process.wait()
        self._ended_at = time.monotonic()
        try:
            self.keeper.stand_in()
        finally:
            ended.set()
            self.notify()

    def _serves(self):
        if not self.alive():
            # weftd's own message is enough, unless it had no time to log one. The log may not outlive this command.
            said = self.log.read_text(errors="replace").strip()
            if self._process.returncode > 0 and said:
                raise LabError(said)
            raise LabError("\n".join([f"{self._end_in_words()} before it served the lab", *said.splitlines()[-MOST_LINES:]]))
        return is_served(self.control)

    def _count_end(self):
        served = self._ended_at - self._served_since if self._served_since else 0
        self._early_ends = self._early_ends + 1 if served < SOON else 1
        if self._early_ends > MOST_RESTARTS:
            raise LabError(f"{self.how_it_ended()}; it ended {self._early_ends} times in a row within {SOON} s and is not started again")

    def _take_core(self, pid):
        """Renames the core dump of a process if it is in its working directory; returns where it is, in words."""
        for name in (f"core.{pid}", "core"):
            dump = self.log.with_name(name)
            with contextlib.suppress(OSError):
                # The directory may be one of the user's, with another file or directory of that name.
                if dump.is_file() and dump.stat().st_mtime >= self._started_at:
                    dump.rename(self.log.with_suffix(".core"))
                    return " (with a core dump next to the log)"
        return f" (with a core dump, see {CORE_PATTERN})"

    def _keep_log(self):
        """Renames the log, and the core dump next to it; returns the new path of the log."""
        numbers = sorted(int(path.stem.rpartition("-")[2]) for path in self.log.parent.glob("weftd-*.log") if path.stem.rpartition("-")[2].isdecimal())
        for number in numbers[:-MOST_LOGS + 1]:
            for suffix in ("log", "core"):
                self.log.with_name(f"weftd-{number}.{suffix}").unlink(missing_ok=True)
        kept = self.log.with_name(f"weftd-{numbers[-1] + 1 if numbers else 1}.log")
        self.log.rename(kept)
        core = self.log.with_suffix(".core")
        if core.is_file():
            core.rename(kept.with_suffix(".core"))
        return kept
