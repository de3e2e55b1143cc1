# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The host side's unit tests, which ctest runs."""
import json
import os
import re
import subprocess
from xml.etree import ElementTree

from lab import cache
from lab.errors import LabError
from lab.results import FAILED, PASSED, SKIPPED, Result

BUILD = cache.TREE / "build/tools"


# What guest tests start.
PROGRAMS = ("weftd", "weft", "weft-stranger", "weft-intruder", "weft-traffic", "weft-uverbs-probe")
TEST_PROGRAM = re.compile(r"\bweft_test\(\s*(\S+)\s([^)]*)\)")
OTHER_TEST = re.compile(r"\badd_test\(NAME (\S+)\s([^)]*)\)")
TARGET = re.compile(r"\$<TARGET_FILE:([^>]+)>")
LOOP = re.compile(r"\bforeach\((\w+) ([^)]*)\)(.*?)\bendforeach\(\)", re.S)
CASE = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)


def programs_of(only):
    """The test programs whose sources have a case that matches `only`, and the programs that a test of another kind runs; none if that cannot be told
    from the sources alone."""
    found = set()
    for listing in (*(cache.TREE / "tools").glob("**/CMakeLists.txt"), *(cache.TREE / "core").glob("*/CMakeLists.txt")):
        text = LOOP.sub(lambda loop: "".join(loop[3].replace(f"${{{loop[1]}}}", word) for word in loop[2].split()), listing.read_text())
        for name, words in OTHER_TEST.findall(text):
            if only.search(f"host.{name}"):
                found.update(TARGET.findall(words))
        for name, words in TEST_PROGRAM.findall(text):
            sources = [listing.parent / word for word in words.split() if word.endswith(".cpp")]
            cases = [f"host.{suite}.{case}" for source in sources for suite, case in CASE.findall(source.read_text())]
            if any(only.search(case) for case in cases):
                found.add(name)
    return found


def build(targets=None):
    """Builds those targets, or all."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", cache.TREE, "--no-print-directory", "tools", f"TARGETS={' '.join(sorted(targets or ()))}"], stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise LabError("the host side does not build", "see the lines above")


def _names():
    listing = json.loads(cache.tool("ctest", "--test-dir", BUILD, "--show-only=json-v1"))
    return [test["name"] for test in listing["tests"]]


def run(results, only=None):
    """Runs the tests whose full name matches `only`; each that ctest knows of gets a result. Returns their number."""
    numbered = enumerate(_names(), 1)
    wanted = [(number, name) for number, name in numbered if not only or only.search(f"host.{name}")]
    if not wanted:
        return 0
    report = cache.TREE / "build/test/ctest.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    selection = ",".join(["0,0,0"] + [str(number) for number, _ in wanted])
    subprocess.run(["ctest", "--test-dir", BUILD, "-I", selection, "-j", str(os.cpu_count()), "--output-junit", report, "--quiet",
                    "--no-tests=error", "--test-output-size-failed", "20000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    try:
        cases = {case.get("name"): case for case in ElementTree.parse(report).iter("testcase")}
    except (OSError, ElementTree.ParseError) as error:
        raise LabError(f"ctest left no report ({error})", "run ctest --test-dir build/tools by hand") from None
    for _, name in wanted:
        results.add(_result(name, cases.get(name)))
    return len(wanted)


def _result(name, case):
    # gtest appends a dump of the parameter's bytes when it has no better text for it.
    name = name.split("  # GetParam()")[0]
    if case is None:
        return Result("host", name, FAILED, "it did not run")
    seconds = float(case.get("time", 0))
    output = (case.findtext("system-out") or "")[-20000:]
    status = case.get("status")
    # ctest calls a test that ran and passed "run"; GoogleTest's skipped ones are "notrun" with a skipped element.
    if status == "run":
        return Result("host", name, PASSED, seconds=seconds)
    skipped = case.find("skipped")
    if skipped is not None and "SKIP" in (skipped.get("message") or "").upper():
        return Result("host", name, SKIPPED, output.strip() or "no reason given", seconds)
    return Result("host", name, FAILED, output or f"ctest says '{status}'", seconds)
