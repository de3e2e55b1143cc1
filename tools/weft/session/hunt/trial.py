# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a schedule once in a lab in virtual time, and determines the verdict: passed, a kernel report, guests that hang, or a run without a regular
end."""
import dataclasses
import os
import pathlib
import re
import shutil
import string
import subprocess
import tempfile
import time

import repeating
import stack
from guest_setup import Setup
from hunt import perturbation, scenarios, signature, walk
from hunt.schedule import FABRIC
from lab import reports, shared_time
from lab.errors import LabError

KERNEL = "um-debug"     # the default: has KASAN, lockdep and fault injection for allocations
TIME_FOR_CHECK = 400    # virtual seconds after the last step
MOST_SECONDS = 600      # seconds of real time on a host that is not busy
FOR_NEXT_SEED = 60      # additional seconds for each seed of a walk's group after the first
MOST_SLOWNESS = 6
STAMP = re.compile(r"^\[ *(\d+\.\d+)\]")
COMPLAINT = re.compile(r"weft-hunt: complaint: (.*)")
DONE = re.compile(r"weft-hunt: (\d+\.\d+) ")
# Maximum number of mappings of one page that dma-debug can count. A program may register its memory any number of times.
OFTEN_MAPPED = "DMA-API: exceeded 7 overlapping mappings"
PROBES = {"verbs": "weft-uverbs-probe", "cm": "weft-ucma-probe"}     # programs of the source tree that scenarios run
LINUX_ONLY = ("verbs", *scenarios.PROTOCOLS)    # scenarios that are only for Linux's stack
PASSED, REPORT, STUCK, NO_END = "passed", "report", "stuck", "no end"

LAB = """
[[switch]]
name = "switch1"
[[sm.partition]]
name = "default"
pkey = 0xffff
[[sm.partition]]
name = "child"
pkey = 0x8001
"""
HOST = """
[[host]]
name = "{name}"
model = "{model}"
ports = {ports}
[[link]]
ends = ["{name}/1", "switch1"]
"""
# Marks the caches whose allocations may fail: all except those of kmemleak and of debugobjects. These allocate their records within allocations of other
# code, in numbers that depend on everything that the guest has done before. A name is the beginning of those of several caches.
MAY_FAIL = "slub_debug=A," + ",".join(f"{letter}*" for letter in (*string.ascii_uppercase, *(letter for letter in string.ascii_lowercase if letter not in "dk"),
                                                               "da", "dc", "dent", "dm", "dq", "kern", "key", "khu", "kio", "kmall", "ks"))
GUEST = pathlib.Path(__file__).resolve().parent / "guest.sh"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """virtual, real: durations in seconds; until: the virtual time at which the step with the report began, or None;
    beyond: the step of a walk has fewer allocations than the number of the one that should fail."""

    verdict: str
    signature: str = ""
    report: str = ""
    virtual: float = 0.0
    real: float = 0.0
    until: float | None = None
    beyond: bool = False


def time_limit(seeds=1):
    """Returns the number of real seconds after which a run of so many seeds is given up. A host that is busy now gets more, because a run that is only slow
    would be a report."""
    slowness = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return (MOST_SECONDS + FOR_NEXT_SEED * max(0, seeds - 1)) * min(MOST_SLOWNESS, max(1, slowness))


def lab_file(schedule):
    ports = 2 if schedule.card == "mthca" else 1
    return LAB + "".join(HOST.format(name=name, model=schedule.card, ports=ports) for name in schedule.hosts)


def script(schedule, host):
    """Returns the script that a guest runs once its stack is loaded."""
    steps = "".join(f"at {step.at:.6f} {step.fail or 0} {' '.join(step.words)}\n" for step in schedule.steps if step.host == host)
    check = f"at {schedule.steps[-1].at + 5:.6f} 0 finish\n" if schedule.check and schedule.steps else ""
    faulty = int(any(step.host == FABRIC and step.words[0] == "card" for step in schedule.steps))
    return f"hosts={len(schedule.hosts)} own={stack.IN_TREE[schedule.card]} faulty={faulty}\n{GUEST.read_text()}{scenarios.script(schedule.scenario)}{steps}{check}log end\n"


def _events(schedule):
    last = schedule.steps[-1].at if schedule.steps else 0
    given = [repeating.event(f"{step.at} {' '.join(step.words)}") for step in schedule.steps if step.host == FABRIC]
    return (*given, (last + TIME_FOR_CHECK, {"command": "shutdown"}))


def _seconds(console):
    """Returns the last time stamp on a console; the guest's clock starts together with the lab's."""
    return max((float(match[1]) for match in map(STAMP.match, console.splitlines()) if match), default=0.0)


def _verdict_of(done, consoles, table, scenario):
    """Returns (verdict, signature, report, time of the step). A new report takes precedence over a known one, and a report over another error."""
    # What follows a report without a last line does not belong to it: messages of the guest's programs and of its steps.
    every = [(re.split(r"\n(?:keeper|weft-hunt): ", report)[0], host) for host, found in done.reports.items()
             for report in found if scenario not in PROBES or OFTEN_MAPPED not in report]
    every = [(signature.with_detachment(signature.with_mapping(report, consoles[host]), consoles[host]), host) for report, host in every]
    # After the kernel's count of leaked objects, each object is reported separately.
    if any(report.startswith(reports.LEAK) for report, _ in every):
        every = [(report, host) for report, host in every if not report.startswith("kmemleak: ")]
    found = [(signature.of(report), report, host) for report, host in every]
    # A leaked object refers to others, which are then leaked, too. Their signatures alone would fit other leaks.
    pages = {page for name, _, _ in found if (page := signature.page_of(name, table))}
    objects = signature.belonging()
    found = [each for each in found if signature.page_of(each[0], objects) not in pages]
    # A fault in the kernel enables interrupts before it panics, so lockdep may report locks that are held. That is a consequence of the fault. A wrong access
    # to memory may follow warnings about objects that cannot be destroyed, and identifies the bug better.
    found.sort(key=lambda each: (signature.page_of(each[0], table) is not None, not each[0].startswith("Kernel mode fault"), not each[0].startswith("KASAN")))
    if found:
        name, report, host = found[0]
        before = consoles[host].partition(report.splitlines()[0])[0]
        return REPORT, name, report, max(map(float, DONE.findall(before)), default=None)
    complaints = [(complaint[1], host) for host, console in consoles.items() if (complaint := COMPLAINT.search(console))]
    # A host that complains about its peer usually does so because of what the peer itself complains about.
    if complaints:
        complaint, host = min(complaints, key=lambda each: each[0].startswith("the peer "))
        return STUCK, complaint, f"{host}: {complaint}", None
    if any(status is None for status in done.status.values()):
        return (STUCK if done.reason == shared_time.TIME_IS_UP else NO_END), f"not finished: {re.sub(r'[0-9.]+ s', 'N s', done.reason)}", done.reason, None
    return PASSED, "", "", None


def _probe(schedule, weftd):
    """Returns the program that the guests of a scenario run, or None."""
    if schedule.scenario in LINUX_ONLY and schedule.stack != stack.LINUX:
        raise LabError(f"the scenario {schedule.scenario} is for Linux's stack")
    if schedule.scenario not in PROBES:
        return None
    probe = pathlib.Path(weftd).parent / PROBES[schedule.scenario]
    if not probe.is_file():
        raise LabError(f"there is no {probe}, which the scenario {schedule.scenario} runs", "build it in a source tree with `make tools`")
    return probe


def run(schedule, kernel, weftd, logs=None, stopped=lambda: False, table=(), keep_passed=False):
    """Runs a schedule in its own lab, whose guests boot that kernel, and returns its Outcome. logs: a directory for the consoles, if the run does not pass or keep_passed is set."""
    scenarios.script(schedule.scenario)
    probe = _probe(schedule, weftd)
    began = time.monotonic()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-hunt-"))
    try:
        file = directory / "lab.toml"
        file.write_text(lab_file(schedule))
        if probe:
            (directory / "share").mkdir()
            shutil.copy2(probe, directory / "share")
        setup = Setup(schedule.stack, kernel, directory / "modules")

        def scripts(fabric):
            return {host: before + script(schedule, host) for host, before in setup.scripts(fabric).items()}

        lab = shared_time.Lab(directory / "lab", weftd, kernel, scripts, schedule.seed, lab_file=file, share=directory / "share" if probe else None,
                              modules=setup.modules, events=_events(schedule), append=MAY_FAIL,
                              host_words=lambda host: perturbation.words(schedule.perturb, schedule.seed, host))
        try:
            done = shared_time.run(lab, lambda: time_limit(walk.count(schedule)), stopped)
            consoles = {host: (lab.directory / f"console-{host}.log").read_text(errors="replace") for host in schedule.hosts}
            verdict, name, report, until = _verdict_of(done, consoles, table, schedule.scenario)
        except LabError as error:
            consoles = {path.stem: path.read_text(errors="replace") for path in lab.directory.glob("console-*.log")}
            if not consoles:
                raise
            verdict, name, report, until = NO_END, re.sub(r"; see .*| within .* s", "", str(error)), str(error), None
        if logs and (keep_passed or verdict != PASSED):
            repeating.keep(lab, logs)
        return Outcome(verdict, name, report, max(map(_seconds, consoles.values())), time.monotonic() - began, until,
                       any(walk.BEYOND in console for console in consoles.values()))
    finally:
        subprocess.run(["rm", "-rf", directory], check=False)
