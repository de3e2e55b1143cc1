# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Generates the schedules of the scenarios probe and removal, in which a card is probed or removed while an allocation fails. Seed N selects the Nth
allocation, so with enough seeds each allocation fails in one run. Nothing is random."""
from hunt.schedule import Schedule, Step

STEPS = {"probe": ("unbind", "probe"), "removal": ("removal",)}     # the last one has the failing allocation
RETURN = {"probe": (), "removal": ("prepare",)}     # the steps between two seeds of a group
BEGIN, PAUSE = 4.0, 2.0     # seconds; at the beginning ib0 is up
ENOUGH = 100000     # more seeds than a walk has
BEYOND = "weft-hunt: beyond the last allocation"    # a message of walk.sh


def generate(name, seed, **settings):
    """Returns the schedule of the Nth allocation, and the one without a failure for seed 0."""
    words = STEPS[name]
    fails = [""] * (len(words) - 1) + [str(seed) if seed else ""]
    return Schedule(name, seed, tuple(Step(BEGIN + PAUSE * index, "node1", (word,), fail) for index, (word, fail) in enumerate(zip(words, fails))), **settings)


def group(name, seeds, **settings):
    """Returns one schedule for several seeds, which run one after the other. A seed's step must not be the first of a fresh guest for its allocation to
    fail, but the number of allocations may then differ slightly."""
    words = [(word, "") for word in STEPS[name][:-1]]
    steps = []
    for seed in seeds:
        steps += [*((word, "") for word in RETURN[name] if steps), *words, (STEPS[name][-1], str(seed))]
    return Schedule(name, seeds[0], tuple(Step(BEGIN + PAUSE * index, "node1", (word,), fail) for index, (word, fail) in enumerate(steps)), **settings)


def count(schedule):
    """Returns the number of seeds in a schedule, which is 1 for other scenarios."""
    if schedule.scenario not in STEPS:
        return 1
    return sum(step.words == STEPS[schedule.scenario][-1:] for step in schedule.steps)


def groups(seeds, size):
    """Divides seeds into groups of consecutive ones, of which none is longer than `size`."""
    result = []
    for seed in seeds:
        if result and len(result[-1]) < size and result[-1][-1] == seed - 1 and result[-1][0] != 0:
            result[-1].append(seed)
        else:
            result.append([seed])
    return result


class Progress:
    """The seeds of a walk that are still to be run. The walk is complete when the step has fewer allocations than a seed's number, and all seeds below
    it have verdicts."""

    def __init__(self, seeds, verdicts):
        self._seeds = seeds
        self._verdicts = verdicts

    @property
    def end(self):
        """Returns the lowest seed known to be beyond the last allocation, or None."""
        return min((seed for seed, verdict in self._verdicts.items() if verdict.get("beyond")), default=None)

    def left(self):
        """Returns the seeds without a verdict, up to the end of the walk."""
        end = self.end
        return [seed for seed in self._seeds if seed not in self._verdicts and (end is None or seed < end)]

    def complete(self):
        return self.end is not None and not self.left()
