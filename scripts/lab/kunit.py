# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs KUnit suites, which are separate modules (weft_*_test.ko), in a guest.

Each module is inserted after the modules that it depends on; its suites run inside insmod. A crash or a hang ends the guest: the module's cases
without a result count as failed, and the next module gets a new guest.
"""
import contextlib
import re
import time

from lab import batch, cache, modules, suites
from lab.guest import Guest, GuestDied
from lab.process import CommandFailed
from lab.results import FAILED, PASSED, Result
from lab.waiting import DeadlineExceeded

# A device whose interrupts the tests of weft_kern use.
NIC = ("-device", "e1000e,romfile=")
MODULE_LIMIT = 400  # seconds on a plain kernel for all suites of one module

# Modules that every run repeats in a VM, because their cases test CPUs, interrupts, or contexts that must not sleep. Other modules behave the
# same on User-Mode Linux, where nothing has to wait. weft_recovery_test belongs to them by its subject, but takes four minutes: with --full.
NEEDS_QEMU = ("weft_context_test", "weft_core_test", "weft_kern_test")


def suites_of_sources():
    """Returns the suites in the sources as (names, cases), because a macro may create two suites with the same cases."""
    for path in [path for top in ("core", "hw", "ulp") for path in (cache.TREE / top).glob("**/*_test.cpp")]:
        for macro, suite, cases in re.findall(r"(KUNIT_SUITE|KUNIT_SUITE_BEFORE|CARD_SUITE|SOFT_SUITES)\(\s*(\w+),(.*?)\);", path.read_text(), re.S):
            yield (suite, f"{suite}_card") if macro == "SOFT_SUITES" else (suite,), re.findall(r"KUNIT_CASE\([\s\\]*(\w+)\)", cases)


def could_choose(variant, only):
    """Returns whether `only` could match a full name on that kernel, by the names of modules, suites and cases in the sources, without a build."""
    if not only:
        return True
    modules_there = {name for path in cache.TREE.glob("[!b]*/**/Kbuild") for name in re.findall(r"\bweft_\w+_test\b", path.read_text())}
    cases = {f"{suite}.{case}" for names, cases in suites_of_sources() for suite in names for case in cases} | {"kernel-log"}
    names = {f"{module}.{case}" for module in modules_there for case in cases} | {"unload", "residue"}
    return any(only.search(f"kunit-{variant}.{name}") for name in names)


class Runner:
    """A run of test modules on a kernel that QEMU boots; adds the results to `results`."""

    def __init__(self, kernel, results, log_directory, seed=0, limit=MODULE_LIMIT, memory="1G", cpus=2):
        self.kernel = kernel
        self.results = results
        self.group = f"kunit-{kernel.variant}"
        self._logs = log_directory
        self._seed = seed
        self._limit = limit
        self._memory = memory
        self._cpus = cpus
        self._guest = None
        self._boots = 0
        self._loaded = []

    def run(self, paths):
        """Runs the test modules in the given order."""
        try:
            for path in paths:
                self._run_module(path)
            if self._guest:
                self._unload_all()
        finally:
            self._drop_guest()

    def _boot(self, path):
        self._boots += 1
        folder = path.parent
        self._guest = Guest(f"kunit{self._boots}", kernel=self.kernel.variant, share=folder, memory=self._memory, cpus=self._cpus,
                            qemu_args=NIC, log=self._logs / f"{self.group}-{self._boots}.log")
        self._guest.start().ready()
        self._loaded = []

    def _drop_guest(self):
        if self._guest:
            self._guest.close()
            self._guest = None

    def _run_module(self, path):
        started = time.monotonic()
        start_offset = 0
        problem = ""
        try:
            if not self._guest:
                self._boot(path)
            needs = modules.needed_by(path, path.parent)
            self._remove_others([needed.stem for needed in needs])
            for needed in needs:
                if needed.stem not in self._loaded:
                    self._insert(needed)
            self._guest.run(f"[ ! -e {suites.SEED} ] || echo {self._seed} >{suites.SEED}")
            start_offset = len(self._guest.sync_log())
            self._insert(path)
            self._guest.sync_log()
        except (CommandFailed, DeadlineExceeded, GuestDied) as error:
            problem = str(error)
            if isinstance(error, DeadlineExceeded):
                problem += self._where_it_hangs()
        text = self._guest.console()[start_offset:] if self._guest else ""
        reports = self._guest.new_reports() if self._guest else []
        suites.add_results(self.results, self.group, path, text, problem, reports, time.monotonic() - started)
        # After a report, lockdep is disabled and memory may be damaged, so further results would prove nothing.
        if problem or reports:
            self._drop_guest()

    def _insert(self, path):
        self._guest.run(["insmod", f"/share/{path.name}"], self._limit)
        self._loaded.append(path.stem)

    def _remove_others(self, needed):
        """Removes modules that a suite does not need, because they would hold resources that it needs, such as the special QPs of its devices."""
        others = [name for name in reversed(self._loaded) if name not in needed]
        if others:
            self._guest.run(["rmmod", *others], 120)
            self._loaded = [name for name in self._loaded if name in needed]

    def _where_it_hangs(self):
        """Returns the blocked tasks and the state of the CPUs, if the guest can still report them."""
        before = len(self._guest.console())
        with contextlib.suppress(CommandFailed, DeadlineExceeded, GuestDied):
            self._guest.run("echo w >/proc/sysrq-trigger; echo l >/proc/sysrq-trigger", 10)
            self._guest.sync_log()
        return "\n" + self._guest.console()[before:][:6000]

    def _unload_all(self):
        """Removes all modules in reverse order, and checks that they leave nothing behind."""
        guest = self._guest
        trouble = []
        try:
            before = guest.find_leaks()
            guest.run(["rmmod", *reversed(self._loaded)], 120)
            left = guest.run("lsmod | grep '^weft_' || true").out + guest.run("ls -d /sys/kernel/debug/weft* 2>/dev/null || true").out
            if left:
                trouble.append(f"left after rmmod:\n{left}")
            trouble += [f"kmemleak, {when}:\n{report}" for when, report in (("with the modules loaded", before), ("after rmmod", guest.find_leaks())) if report]
            guest.sync_log()
        except (CommandFailed, DeadlineExceeded, GuestDied) as error:
            trouble.append(str(error))
        trouble += guest.new_reports()
        self.results.add(Result(self.group, "unload", FAILED if trouble else PASSED, "\n".join(trouble)))


def runner_for(kernel):
    """Returns the class that runs modules on that kernel."""
    return batch.Runner if kernel.native else Runner


def run(kernel, results, only=None, seed=0, full=False):
    """Runs the KUnit modules that were built for the kernel and whose full name matches `only`. Without `only`, runs those of the default run, or all
    if `full` is set. Returns their number."""
    paths = modules.all_of(kernel, tests=True)
    if only:
        paths = [path for path in paths if only.search(f"kunit-{kernel.variant}.{path.stem}")]
    elif not kernel.native and not full:
        paths = [path for path in paths if path.stem in NEEDS_QEMU]
    runner_for(kernel)(kernel, results, cache.TREE / "build/test", seed).run(paths)
    return len(paths)
