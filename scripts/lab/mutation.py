# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs mutants: versions of the tree with one defect each (scripts/mutations.toml), which the given test must detect.

One copy of the tree is used for all: a mutant is applied, the changed files are built, the resulting modules are copied to another directory, and the
mutant is reverted. A mutant therefore costs only the compilation of the files that it changes.
"""
import dataclasses
import fcntl
import os
import random
import shutil
import subprocess
import time
import tomllib

from lab import batch, cache, kunit, modules
from lab.errors import LabError
from lab.results import FAILED, PASSED, Result, Results

LIST = cache.TREE / "scripts/mutations.toml"
WORK = cache.TREE / "build/mutate"
LIMIT = 20      # time limit in seconds for the suites of a mutant's module on User-Mode Linux, which take three; a mutant that hangs exceeds it
HOST_LIMIT = 300   # time limit in seconds for one test of a host program, the same as ctest's
REPAIR = "REPAIR"   # in place of a rule: a defect that was fixed in the past, and has no rule number


@dataclasses.dataclass(frozen=True)
class Mutant:
    rule: str
    file: str
    find: str
    put: str
    module: str
    test: str
    kernel: str = "any"         # or "checked", "unchecked", "smp", "checked smp"
    hangs: bool = False

    @property
    def name(self):
        return f"{self.rule}.{self.test}"

    def text(self, tree):
        """Returns the text of the file with the defect."""
        text = (tree / self.file).read_text()
        if (count := text.count(self.find)) != 1:
            raise LabError(f"the text of the mutant {self.name} occurs {count} times in {self.file}", "update scripts/mutations.toml")
        return text.replace(self.find, self.put)

    def shows_on(self, kernel):
        return {"any": True, "checked": kernel.checked, "unchecked": not kernel.checked, "smp": not kernel.native,
                "checked smp": kernel.checked and not kernel.native}[self.kernel]

    @property
    def of_host(self):
        """Returns True if the mutant's test belongs to a host program and not to a module."""
        return not self.module.startswith("weft_")


def load(path=LIST):
    return [Mutant(**entry) for entry in tomllib.loads(path.read_text())["mutant"]]


COPIED = ("core", "debian", "hw", "ulp", "include", "tools", "scripts", "Kbuild", "Makefile")


def copy_tree(to=WORK / "tree"):
    """Copies the current tree, with uncommitted changes; returns the copy. Files that did not change keep their times, so that they are not built again."""
    to.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "-C", cache.TREE, "ls-files", "--cached", "--others", "--exclude-standard"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    wanted = {name for name in names if (cache.TREE / name).is_file() and name.split("/")[0] in COPIED}
    for name in wanted:
        source, copy = cache.TREE / name, to / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)
        copy.touch()
    for path in [path for top in ("core", "hw", "ulp", "include", "tools") for path in (to / top).rglob("*")]:
        if path.is_file() and path.relative_to(to).as_posix() not in wanted:
            path.unlink()
    return to


class Trial:
    """Tests mutants on one kernel."""

    def __init__(self, kernel, seed):
        self._kernel = kernel
        self._seed = seed
        WORK.mkdir(parents=True, exist_ok=True)
        self._lock = open(WORK / ".lock", "w", encoding="utf-8")     # held while this object exists
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LabError("the copy of the tree is in use", "another run of mutants must end first") from None
        self._tree = copy_tree()
        self._built = self._tree / "build/modules" / kernel.release
        self._build("the copy of the tree")

    def _build(self, what):
        done = subprocess.run(["scripts/make/kbuild/run", self._kernel.kdir, "-j2", "modules"], cwd=self._tree, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise LabError(f"{what} does not build", "\n".join(done.stdout.splitlines()[-20:]))

    def modules(self, mutant, folder):
        """Builds a mutant and copies the modules of its suite to the folder; returns the suite's module there."""
        path = self._tree / mutant.file
        whole = path.read_text()
        try:
            path.write_text(mutant.text(self._tree))
            self._build(f"the mutant {mutant.name}")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            suite = self._built / f"{mutant.module}.ko"
            for module in [*modules.needed_by(suite, self._built), suite]:
                shutil.copy2(module, folder)
        finally:
            path.write_text(whole)
        return folder / suite.name

    def run(self, suite):
        """Returns the results of the suite. Only this function depends on where the suite runs."""
        seen = Results(quiet=True)
        if self._kernel.native:
            batch.Runner(self._kernel, seen, WORK / "logs", self._seed, limit=LIMIT).run([suite])
        else:
            kunit.Runner(self._kernel, seen, WORK / "logs", self._seed).run([suite])
        return seen.all

    def run_on_host(self, mutant):
        """Returns the result of the single test in the host program."""
        path = self._tree / mutant.file
        whole = path.read_text()
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        try:
            path.write_text(mutant.text(self._tree))
            for words in (("make", "build/tools/build.ninja"), ("cmake", "--build", "build/tools", "--target", mutant.module)):
                done = subprocess.run(words, cwd=self._tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env=environment, check=False)
                if done.returncode:
                    raise LabError(f"the mutant {mutant.name} does not build", "\n".join(done.stdout.splitlines()[-20:]))
        finally:
            path.write_text(whole)
        program = self._tree / "build/tools/tests" / mutant.module
        name = f"{mutant.module}.{mutant.test}"
        try:
            done = subprocess.run([program, f"--gtest_filter=*.{mutant.test}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=HOST_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return [Result("host", name, FAILED, f"did not end within {HOST_LIMIT} s")]
        if "Running 1 test" not in done.stdout:
            raise LabError(f"{mutant.module} has no test {mutant.test}")
        return [Result("host", name, FAILED if done.returncode else PASSED, done.stdout)]

    def verdict(self, mutant):
        """Returns a Result for the mutant, which has passed if the mutant's test detects the defect by failing."""
        begun = time.monotonic()
        try:
            said = self.run_on_host(mutant) if mutant.of_host else self.run(self.modules(mutant, WORK / "modules"))
        except LabError as error:
            return Result("mutant", mutant.name, FAILED, str(error))
        of_test = [result for result in said if result.name.endswith(f".{mutant.test}")]
        if any(result.outcome == FAILED for result in of_test) or ended_in(mutant, said):
            outcome, detail = PASSED, ""
        else:
            others = [result.name for result in said if result.outcome == FAILED]
            outcome = FAILED
            detail = (f"{mutant.test} {of_test[0].outcome if of_test else 'did not run'} with the defect in {mutant.file}"
                      + (f"; these failed: {' '.join(others)}" if others else "; nothing failed"))
        return Result("mutant", mutant.name, outcome, detail, time.monotonic() - begun)


def places():
    """Returns the position of each KUnit case: (suite, number of cases before it) for each suite that has a case with that name."""
    found = {}
    for names, cases in kunit.suites_of_sources():
        for index, case in enumerate(cases):
            found.setdefault(case, []).extend((suite, index) for suite in names)
    return found


def ended_in(mutant, said):
    """Returns whether the given test was running when the kernel hung or crashed, that is, whether it is the first case of its suite without a
    result."""
    if mutant.of_host:
        return False
    failed = {result.name for result in said if result.outcome == FAILED}
    return any(f"{mutant.module}.{suite}.case {before + 1}" in failed and f"{mutant.module}.{suite}.case {before}" not in failed
               for suite, before in places()[mutant.test])


def one_for_each_module(mutants):
    """Returns the first mutant of each module that is quick to build, because it changes a source file and not a header, and that does not hang."""
    found = {}
    for mutant in mutants:
        if mutant.file.endswith(".cpp") and not mutant.hangs and mutant.kernel == "any" and not mutant.of_host:
            found.setdefault(mutant.module, mutant)
    return list(found.values())


def choose(mutants, kernel, full, only, seed):
    """Returns the mutations to be tested, in order. If there is not enough time for all, the seed decides which are omitted."""
    chosen = [mutant for mutant in mutants if mutant.shows_on(kernel) and (full or not mutant.hangs) and (not only or only.search(mutant.name))]
    random.Random(seed).shuffle(chosen)
    return chosen
