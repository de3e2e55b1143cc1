# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reads and writes schedules. A schedule is a list of steps that are performed in a lab at given times. Its file has one line for each step; it can
also be written by hand:

    scenario ipoib
    seed 17
    expect NULL dereference: __netif_schedule, ipoib_flush_paths
    6.250 node1 create_child 0x8001 fail=37
    7.000 fabric link down node1

A step consists of a time in seconds since the start of the lab, a host, and a function of the scenario's script with its arguments. Instead of the
host, it may have the word `fabric` and a change as in `weft run --at`. fail=N makes the Nth allocation of an object in the step fail; fail=any:N
counts allocations of pages, too.
"""
import dataclasses
import re

from hunt import perturbation
from lab.errors import LabError
from stack import IN_TREE, NAMES

FABRIC = "fabric"
HOST = re.compile(r"node[1-9]")
WORD = re.compile(r"[\w.=%:-]+")
STEP = re.compile(r"(?P<at>\d{1,5}(?:\.\d{1,6})?) (?P<host>\w+) (?P<words>.*?)(?: fail=(?P<fail>(?:any:)?\d{1,6}))?")
SETTINGS = {"scenario": "", "seed": "0", "stack": "linux", "card": "mlx4", "check": "yes", "perturb": "", "expect": ""}
MOST_STEPS = 10000
LARGEST_SEED = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Step:
    at: float
    host: str
    words: tuple
    fail: str = ""

    def __str__(self):
        return " ".join((f"{self.at:.3f}", self.host, *self.words, *((f"fail={self.fail}",) if self.fail else ())))


@dataclasses.dataclass(frozen=True)
class Schedule:
    """check: whether the lab is checked after the last step (the script's function `check`); perturb: how the guests' scheduling is perturbed; expect: the
    signature of the expected report."""

    scenario: str
    seed: int
    steps: tuple
    stack: str = SETTINGS["stack"]
    card: str = SETTINGS["card"]
    check: bool = True
    perturb: str = SETTINGS["perturb"]
    expect: str = ""

    def but(self, **changes):
        return dataclasses.replace(self, **changes)

    @property
    def hosts(self):
        """Returns the hosts in the steps. The lab has no others."""
        named = {word for step in self.steps for word in (step.host, *step.words) if HOST.fullmatch(word)}
        return sorted(named) or ["node1"]

    def __str__(self):
        settings = {"scenario": self.scenario, "seed": self.seed, "stack": self.stack, "card": self.card, "check": "yes" if self.check else "no",
                    "perturb": self.perturb, "expect": self.expect}
        lines = [f"{name} {value}" for name, value in settings.items() if str(value) != SETTINGS[name]]
        return "\n".join([*lines, *map(str, self.steps)]) + "\n"


def _step(line):
    found = STEP.fullmatch(line)
    if not found:
        raise LabError("it is neither a setting nor a step", 'a step is like "6.250 node1 create_child 0x8001 fail=37"')
    words = tuple(found["words"].split())
    if not words or not all(WORD.fullmatch(word) for word in words):
        raise LabError("a step has words of letters, digits and .=%:-")
    if found["host"] != FABRIC and not HOST.fullmatch(found["host"]):
        raise LabError(f"there is no host {found['host']}", "there are node1 to node9, and fabric")
    return Step(float(found["at"]), found["host"], words, found["fail"] or "")


def read(file):
    """Reads the schedule in a file; errors contain the number of the line."""
    settings, steps = dict(SETTINGS), []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        line = line.partition("#")[0].strip()
        name, _, value = line.partition(" ")
        try:
            if name in SETTINGS:
                settings[name] = perturbation.parse(value) if name == "perturb" else value
            elif line:
                steps.append(_step(line))
        except LabError as error:
            raise LabError(f"{file}:{number}: {error}") from None
    if not settings["seed"].isdecimal() or int(settings["seed"]) > LARGEST_SEED:
        raise LabError(f"{file}: the seed {settings['seed']} is not a number below 2^32")
    for name, values in (("stack", NAMES), ("card", tuple(IN_TREE))):
        if settings[name] not in values:
            raise LabError(f"{file}: {name} is one of {', '.join(values)}")
    if settings["check"] not in ("yes", "no"):
        raise LabError(f"{file}: check is yes or no")
    if len(steps) > MOST_STEPS:
        raise LabError(f"{file}: it has more than {MOST_STEPS} steps")
    return Schedule(settings["scenario"], int(settings["seed"]), tuple(sorted(steps, key=lambda step: step.at)), settings["stack"], settings["card"],
                    settings["check"] == "yes", settings["perturb"], settings["expect"])
