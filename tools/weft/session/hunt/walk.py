# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Generates the schedules of a walk: a card is probed or removed, and seed N makes the Nth allocation fail. Nothing else is random, so every allocation
fails in one of the runs."""
from hunt.schedule import Schedule, Step

STEPS = {"probe": ("unbind", "probe"), "removal": ("removal",)}     # the last one has the failing allocation
BEGIN, PAUSE = 4.0, 2.0     # seconds; at the beginning ib0 is up
ENOUGH = 100000     # more seeds than a walk has
BEYOND = "weft-hunt: beyond the last allocation"    # a message of walk.sh


def generate(name, seed, **settings):
    """Returns the schedule of the Nth allocation, and the one without a failure for seed 0."""
    words = STEPS[name]
    fails = [""] * (len(words) - 1) + [str(seed) if seed else ""]
    return Schedule(name, seed, tuple(Step(BEGIN + PAUSE * index, "node1", (word,), fail) for index, (word, fail) in enumerate(zip(words, fails))), **settings)


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
