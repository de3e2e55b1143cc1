# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds the user-space programs in tools/, and runs their unit tests with ctest, under sanitizers.

Three trees are built from the same sources. The programs, weft-explore and its tests are built without sanitizers (weft-explore enables sanitizers
itself). The host tests and the fuzz targets are built with AddressSanitizer and UndefinedBehaviorSanitizer. So each library is compiled twice and
each test once. A third tree, with ThreadSanitizer, is only built for `scripts/test --full`, or if tests of its group, host-tsan, are selected by
name.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
from xml.etree import ElementTree

from lab import cache
from lab.errors import LabError
from lab.results import FAILED, PASSED, SKIPPED, Result



@dataclasses.dataclass(frozen=True)
class Tree:
    """A build tree of tools/. group: the first word of its tests' full names."""
    directory: pathlib.Path
    group: str = "host"
    options: tuple = ()
    optimise: str = "-O1"

    def configure(self):
        """Configures the tree. With sanitizers, clang compiles it, because only clang has libFuzzer and checks lock annotations."""
        words = ["cmake", "-S", cache.TREE / "tools", "-B", self.directory, "-G", "Ninja", *self.options]
        if self.options:
            words += [f"-DCMAKE_CXX_COMPILER={clang()}", f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={self.optimise} -g1"]
        # Ninja runs CMake again if a CMakeLists.txt has changed.
        made, command = self.directory / "configured-by", "\n".join(map(str, words))
        if made.exists() and made.read_text() == command:
            return
        _command("the host side cannot be configured", *words)
        made.write_text(command)

    def build(self, targets=()):
        """Builds these targets, or all targets. The output of CMake and Ninja is printed if they fail."""
        self.configure()
        _command("the host side does not build", "cmake", "--build", self.directory, *(("--target", *sorted(targets)) if targets else ()))


PLAIN = Tree(cache.TREE / "build/tools")
SANITIZED = Tree(cache.TREE / "build/sanitized", options=("-DWEFT_SANITIZE=address,undefined", "-DWEFT_FUZZ=ON"))
THREADS = Tree(cache.TREE / "build/tsan", group="host-tsan", options=("-DWEFT_SANITIZE=thread",))
# A sanitizer report stops the test and is its output.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}

# Parts that exist only in the tree without sanitizers: a directory, and the text of other CMakeLists.txt within these conditions.
UNSANITIZED = "explore"
UNSANITIZED_PART = re.compile(r"^if\(NOT WEFT_SANITIZE\)\n(.*?)^endif\(\)", re.S | re.M)
# Programs that guest tests start.
PROGRAMS = ("weftd", "weft", "weft-malicious-guest", "weft-intruder", "weft-traffic", "weft-ucma-probe", "weft-uverbs-probe")
TEST_PROGRAM = re.compile(r"\bweft_test\(\s*(\S+)\s([^)]*)\)")
OTHER_TEST = re.compile(r"\badd_test\(NAME (\S+)\s([^)]*)\)")
TARGET = re.compile(r"\$<TARGET_FILE:([^>]+)>")
LOOP = re.compile(r"\bforeach\((\w+) ([^)]*)\)(.*?)\bendforeach\(\)", re.S)
CASE = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)


def clang():
    """Returns the newest clang++ that is installed."""
    for name in ("clang++-19", "clang++"):
        if path := shutil.which(name):
            return path
    raise LabError("there is no clang, which has libFuzzer and the sanitizers", "run scripts/setup, which installs it")


def _command(complaint, *words):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise LabError(f"{complaint}:\n{done.stdout[-8000:]}")


def programs_of(only, tree=SANITIZED):
    """Returns the test programs of that tree whose sources have a case that matches `only`, and the programs that a test of another kind runs. The
    set is empty if the sources do not show any."""
    found = set()
    for listing in (*(cache.TREE / "tools").glob("**/CMakeLists.txt"), *(cache.TREE / "core").glob("*/CMakeLists.txt")):
        text = LOOP.sub(lambda loop: "".join(loop[3].replace(f"${{{loop[1]}}}", word) for word in loop[2].split()), listing.read_text())
        if listing.parent.name == UNSANITIZED:
            text = text if tree is PLAIN else ""
        else:
            text = "".join(UNSANITIZED_PART.findall(text)) if tree is PLAIN else UNSANITIZED_PART.sub("", text)
        for name, words in OTHER_TEST.findall(text):
            if only.search(f"{tree.group}.{name}"):
                found.update(TARGET.findall(words))
        for name, words in TEST_PROGRAM.findall(text):
            sources = [listing.parent / word for word in words.split() if word.endswith(".cpp")]
            cases = [f"{tree.group}.{suite}.{case}" for source in sources for suite, case in CASE.findall(source.read_text())]
            if any(only.search(case) for case in cases):
                found.add(name)
    return found


def build(targets=None):
    """Builds these programs, or all programs, in the tree without sanitizers, and copies them to build/bin."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", cache.TREE, "--no-print-directory", "tools", f"TARGETS={' '.join(sorted(targets or ()))}"], stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise LabError("the host side does not build", "see the lines above")


def _names(tree):
    listing = json.loads(cache.tool("ctest", "--test-dir", tree.directory, "--show-only=json-v1"))
    return [test["name"] for test in listing["tests"]]


def run(results, only=None, tree=SANITIZED):
    """Runs the tree's tests whose full names match `only`, and adds a result for each test that ctest lists. Returns their number."""
    if not (tree.directory / "CTestTestfile.cmake").exists():
        return 0
    numbered = enumerate(_names(tree), 1)
    wanted = [(number, name) for number, name in numbered if not only or only.search(f"{tree.group}.{name}")]
    if not wanted:
        return 0
    report = cache.TREE / f"build/test/ctest-{tree.directory.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    selection = ",".join(["0,0,0"] + [str(number) for number, _ in wanted])
    subprocess.run(["ctest", "--test-dir", tree.directory, "-I", selection, "-j", str(os.cpu_count()), "--output-junit", report, "--quiet",
                    "--no-tests=error", "--test-output-size-failed", "20000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**SANITIZER_OPTIONS, **os.environ}, check=False)
    try:
        cases = {case.get("name"): case for case in ElementTree.parse(report).iter("testcase")}
    except (OSError, ElementTree.ParseError) as error:
        raise LabError(f"ctest left no report ({error})", f"run ctest --test-dir {tree.directory.relative_to(cache.TREE)} by hand") from None
    for _, name in wanted:
        results.add(_result(tree.group, name, cases.get(name)))
    return len(wanted)


def _result(group, name, case):
    # GoogleTest appends a dump of the parameter's bytes if it cannot print the parameter.
    name = name.split("  # GetParam()")[0]
    if case is None:
        return Result(group, name, FAILED, "it did not run")
    seconds = float(case.get("time", 0))
    output = (case.findtext("system-out") or "")[-20000:]
    status = case.get("status")
    # ctest reports "run" for a test that ran and passed. Tests that GoogleTest skips are "notrun" with a skipped element.
    if status == "run":
        return Result(group, name, PASSED, seconds=seconds)
    skipped = case.find("skipped")
    if skipped is not None and "SKIP" in (skipped.get("message") or "").upper():
        return Result(group, name, SKIPPED, output.strip() or "no reason given", seconds)
    return Result(group, name, FAILED, output or f"ctest says '{status}'", seconds)
