# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Collects the results of tests, prints them as they arrive, counts them, and writes them as JUnit XML."""
import dataclasses
import re
import sys
import threading
from xml.etree import ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# Characters that XML 1.0 cannot represent, even escaped.
UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


@dataclasses.dataclass
class Result:
    group: str          # "host", "kunit-plain", "guest-debug", …
    name: str
    outcome: str
    detail: str = ""    # the reason of a failure or skip, which is printed in full
    seconds: float = 0.0

    @property
    def full_name(self):
        return f"{self.group}.{self.name}"


class Results:
    """All results of a run. Several threads may add results."""

    def __init__(self, quiet=False):
        self.all = []
        self._quiet = quiet
        self._lock = threading.Lock()

    def add(self, *results):
        with self._lock:
            for result in results:
                self.all.append(result)
                if not self._quiet:
                    self._show(result)

    @staticmethod
    def _show(result):
        line = f"{result.outcome:7} {result.full_name}"
        if result.seconds >= 0.1:
            line += f" ({result.seconds:.1f} s)"
        if result.outcome == SKIPPED:
            line += f": {result.detail}"
        print(line)
        if result.outcome == FAILED:
            print("".join(f"    | {text}\n" for text in (result.detail or "no details").splitlines()), end="")
        sys.stdout.flush()

    def count(self, outcome):
        return sum(result.outcome == outcome for result in self.all)

    def summary(self):
        return f"{self.count(PASSED)} passed, {self.count(FAILED)} failed, {self.count(SKIPPED)} skipped"

    @property
    def good(self):
        """Returns True if something ran, and nothing failed."""
        return self.count(FAILED) == 0 and self.count(PASSED) > 0

    def write_junit(self, path):
        suites = ElementTree.Element("testsuites")
        for group in dict.fromkeys(result.group for result in self.all):
            members = [result for result in self.all if result.group == group]
            suite = ElementTree.SubElement(suites, "testsuite", name=group, tests=str(len(members)),
                                           failures=str(sum(member.outcome == FAILED for member in members)),
                                           skipped=str(sum(member.outcome == SKIPPED for member in members)))
            for member in members:
                case = ElementTree.SubElement(suite, "testcase", classname=group, name=member.name, time=f"{member.seconds:.3f}")
                if member.outcome != PASSED:
                    lines = member.detail.splitlines() or [""]
                    reason = ElementTree.SubElement(case, "failure" if member.outcome == FAILED else "skipped",
                                                    message=UNPRINTABLE.sub("?", lines[0]))
                    reason.text = UNPRINTABLE.sub("?", member.detail)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".new")
        ElementTree.ElementTree(suites).write(temporary, encoding="unicode", xml_declaration=True)
        temporary.rename(path)
