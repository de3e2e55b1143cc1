# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs KUnit suites on User-Mode Linux (lab.uml) in virtual time. The modules are divided between two kernels that take about the same time. There
is no external input, so the same modules and the same seed give the same logs.

A shell script is process 1. It logs where each module begins and ends. A module has failed if a test fails or the kernel reports an error;
the results of later modules in that kernel would not be reliable, so another kernel continues with them.
"""
import contextlib
import itertools
import pathlib
import re
import shlex
import shutil
import tempfile
import threading
import time
from concurrent import futures

from lab import modules, reports, suites, uml
from lab.errors import LabError, exit_in_words
from lab.guest import slowness
from lab.results import FAILED, PASSED, Result

MODULE_LIMIT = 120  # seconds of real time for all suites of one module
MEMORY = "384M"
# CPU time of modules on um-debug, by which they are divided between the kernels; all modules together take 80 seconds. Modules that are not listed
# take at most one second.
KERNELS = 2
SECONDS = {"weft_cm_test": 18, "weft_mad_test": 15, "weft_ipoib_test": 15, "weft_rdma_cm_test": 11, "weft_context_test": 6, "weft_recovery_test": 6,
           "weft_umad_test": 5, "weft_amso1100_test": 2}

PROLOGUE = r"""# Written by scripts/lab/batch.py.
b=/bin/busybox
say() { echo "weft-batch: $*" >/dev/kmsg; }
must() { "$@" 2>/batch/error || { say failed; $b poweroff -f; }; }
insert() { must $b insmod /share/$1.ko; }
leaks() { # FILE
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	# kmemleak reports only objects that are older than five seconds.
	$b sleep 6; echo scan >/sys/kernel/debug/kmemleak
	$b sleep 6; echo scan >/sys/kernel/debug/kmemleak
	$b cat /sys/kernel/debug/kmemleak >/batch/$1
}
$b mkdir /share
must $b mount -t debugfs debugfs /sys/kernel/debug
"""
EPILOGUE = r"""say begin unload
leaks leaks-loaded
must $b rmmod $loaded
$b lsmod | $b grep '^weft_' >/batch/left
$b ls -d /sys/kernel/debug/weft* >>/batch/left 2>/dev/null
leaks leaks-unloaded
say end unload
$b poweroff -f
"""


def shares(paths):
    """Divides the modules between kernels that take about the same time. Keeps the modules' order."""
    found = [[] for _ in range(min(KERNELS, len(paths)))]

    def seconds(share):
        return sum(SECONDS.get(path.stem, 1) for path in share)

    for path in sorted(paths, key=lambda path: (-SECONDS.get(path.stem, 1), path.stem)):
        min(found, key=seconds).append(path)
    return [sorted(share, key=paths.index) for share in found]


class Runner:
    """A run of test modules on User-Mode Linux kernels; adds the results to `results`."""

    def __init__(self, kernel, results, log_directory, seed=0, limit=MODULE_LIMIT):
        self.kernel = kernel
        self.results = results
        self.group = f"kunit-{kernel.variant}"
        self._logs = log_directory
        self._seed = seed
        self._limit = limit
        self._given_up = threading.Event()
        self._unloads = []      # for each kernel, the errors that occurred when its modules were removed

    def run(self, paths):
        """Runs the test modules. Each kernel runs its share in the given order."""
        with futures.ThreadPoolExecutor(KERNELS) as pool:
            try:
                list(pool.map(self._run_share, shares(list(paths)), itertools.count(1)))
            except BaseException:
                self._given_up.set()
                raise
        if self._unloads:
            trouble = [text for found in self._unloads for text in found]
            self.results.add(Result(self.group, "unload", FAILED if trouble else PASSED, "\n".join(trouble)))

    def _run_share(self, paths, number):
        name = f"{self.group}-{number}"
        for again in itertools.count(2):
            paths = paths[self._boot(paths, name):]
            if not paths:
                return
            name = f"{self.group}-{number}-{again}"

    def _boot(self, paths, name):
        """Runs modules in one kernel until one fails; returns the number of modules with results."""
        folder = self._logs / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        log = folder.with_suffix(".log")
        (folder / "run").write_text(self._script(paths))
        ended = self._execute(folder, log)
        text = log.read_text(errors="replace")
        for number, path in enumerate(paths, 1):
            said, problem = self._part(path.stem, text, folder, ended)
            found = reports.find(said)
            suites.add_results(self.results, self.group, path, said, problem, found)
            if problem or found:
                return number
        self._unloads.append(self._unload_trouble(text, folder, ended))
        return len(paths)

    def _script(self, paths):
        lines = [PROLOGUE, f"must $b mount -t hostfs -o {shlex.quote(str(paths[0].parent))} share /share"]
        loaded = []
        for path in paths:
            needed = [need.stem for need in modules.needed_by(path, path.parent)]
            lines.append(f"say begin {path.stem}")
            # Modules that a suite does not need are removed, because they would hold resources that it needs, such as the special QPs of its devices.
            if others := [name for name in reversed(loaded) if name not in needed]:
                lines.append(f"must $b rmmod {' '.join(others)}")
            loaded = [name for name in loaded if name in needed]
            for name in [*needed, path.stem]:
                if name not in loaded:
                    if name == path.stem:
                        lines.append(f"[ ! -e {suites.SEED} ] || echo {self._seed} >{suites.SEED}")
                    lines.append(f"insert {name}")
                    loaded.append(name)
            lines.append(f"say end {path.stem}")
        lines.append(f'loaded="{" ".join(reversed(loaded))}"')
        return "\n".join([*lines, EPILOGUE])

    def _execute(self, folder, log):
        """Runs a kernel until it exits; returns how it ended, in words."""
        limit = self._limit * slowness(self.kernel.variant)
        words = [*uml.VIRTUAL_TIME, f"weft.batch={folder}"]
        with tempfile.TemporaryDirectory(prefix="weft-um-", ignore_cleanup_errors=True) as state:
            keeper = uml.start(self.kernel, words, memory=MEMORY, log=log, state=pathlib.Path(state))
            try:
                begun, since = 0, time.monotonic()
                while keeper.poll() is None:
                    if self._given_up.is_set():
                        raise LabError("the run was aborted")
                    count = log.read_bytes().count(b"weft-batch: begin")
                    if count > begun:
                        begun, since = count, time.monotonic()
                    if time.monotonic() - since > limit:
                        return f"the kernel did not end within {limit:g} s"
                    time.sleep(0.05)
                return f"the kernel {exit_in_words(keeper.returncode)}"
            finally:
                uml.end(keeper)

    @staticmethod
    def _part(name, text, folder, ended):
        """Returns a module's output between the lines that mark its begin and its end, and an error if a mark is missing."""
        begin = re.search(rf"^.*weft-batch: begin {name}$", text, re.M)
        if not begin:
            return "", f"{ended} before it began:\n" + "\n".join(text.splitlines()[-15:])
        end = re.compile(rf"^.*weft-batch: end {name}$", re.M).search(text, begin.end())
        if end:
            return text[begin.end():end.start()], ""
        error = ""
        with contextlib.suppress(FileNotFoundError):
            error = (folder / "error").read_text(errors="replace").strip()
        return text[begin.end():], "\n".join(filter(None, (error, ended, *text.splitlines()[-15:])))

    def _unload_trouble(self, text, folder, ended):
        """Returns errors that occurred when all modules were removed in reverse order, and what the modules left behind."""
        said, problem = self._part("unload", text, folder, ended)
        trouble = [problem] if problem else []
        for file, what in (("left", "left after rmmod"), ("leaks-loaded", "kmemleak, with the modules loaded"), ("leaks-unloaded", "kmemleak, after rmmod")):
            path = folder / file
            if path.exists() and path.read_text().strip():
                trouble.append(f"{what}:\n{path.read_text()}")
        return trouble + reports.find(said)
