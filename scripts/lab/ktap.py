# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses KUnit's output on the console (KTAP version 1, as Linux 6.1 writes it). The parser is strict: a result that was announced and is missing, or
differs from the announcement, is a failure.

    # Subtest: registry            the suite's name, one level in
    1..2                           the number of cases
    # device_add: EXPECTATION …    diagnostics, for the case whose result comes next
    ok 1 device_add
    not ok 2 device_remove
not ok 1 registry                  the suite's own result, not indented
"""
import dataclasses
import re

from lab import reports
from lab.results import FAILED, PASSED, SKIPPED

SUBTEST = re.compile(r"^    # Subtest: (\S.*)$")
PLAN = re.compile(r"^    1\.\.(\d+)$")
CASE = re.compile(r"^    (ok|not ok) (\d+) (?:- )?(\S+)(?: +# (.*))?$")
SUITE = re.compile(r"^(ok|not ok) (\d+) (?:- )?(\S+)(?: +# (.*))?$")


@dataclasses.dataclass
class Case:
    name: str
    outcome: str
    detail: str = ""


@dataclasses.dataclass
class Suite:
    name: str
    planned: int | None = None
    cases: list = dataclasses.field(default_factory=list)
    closed: bool = False
    errors: list = dataclasses.field(default_factory=list)    # violations of the format

    def outcomes(self):
        """Returns the cases, and one more failed case for each error in the output."""
        missing = (self.planned or 0) - len(self.cases)
        problems = list(self.errors)
        if self.planned is None:
            problems.append("it did not announce its number of cases")
        elif missing > 0:
            problems.append(f"{missing} of {self.planned} cases did not run")
        elif missing < 0:
            problems.append(f"{len(self.cases)} cases ran and {self.planned} were announced")
        elif self.planned == 0:
            problems.append("it has no cases")
        if not self.closed:
            problems.append("it did not end")
        extra = [Case("did not run", FAILED, text) for text in problems[:1] if missing <= 0]
        extra += [Case(f"case {len(self.cases) + n + 1}", FAILED, f"did not run: {'; '.join(problems)}") for n in range(max(missing, 0))]
        return self.cases + extra


def parse(text):
    """Returns the suites in a part of a console log, in order."""
    suites = []
    current = None
    notes = []
    for line in text.splitlines():
        words = reports.message(line)
        if found := SUBTEST.match(words):
            current = Suite(found[1])
            suites.append(current)
            notes = []
        elif current is None:
            continue
        elif (found := PLAN.match(words)) and current.planned is None:
            current.planned = int(found[1])
        elif found := CASE.match(words):
            _add_case(current, found, notes)
            notes = []
        elif (found := SUITE.match(words)) and found[3] == current.name:
            current.closed = True
            claims_failure = found[1] == "not ok"
            has_failure = any(case.outcome == FAILED for case in current.cases)
            if claims_failure and not has_failure:
                current.errors.append("the suite failed although no case did:\n" + "\n".join(notes))
            elif has_failure and not claims_failure:
                current.errors.append("the suite passed although a case failed")
            current = None
        else:
            notes.append(words)
    return suites


def _add_case(suite, found, notes):
    verdict, number, name, directive = found.groups()
    if int(number) != len(suite.cases) + 1:
        suite.errors.append(f"case {number} ({name}) came where case {len(suite.cases) + 1} was due")
    if directive and directive.upper().startswith("SKIP"):
        suite.cases.append(Case(name, SKIPPED, directive[4:].strip() or "no reason given"))
    elif verdict == "ok":
        suite.cases.append(Case(name, PASSED))
    else:
        suite.cases.append(Case(name, FAILED, "\n".join(notes)))
