# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures where a test run spends its time, and checks the time budget of each group of tests (Documentation/testing.rst, "Time")."""
import contextlib
import time

# Budgets in seconds on two cores with all caches warm. If one is raised, another must be lowered.
PARTS = {
    "host": 180,            # build and tests
    "host-tsan": 900,       # only with --full; mostly compilation
    "fuzz": 60,
    "kunit-um-debug": 90,   # for each kernel, including the build of its modules
    "guest-um-debug": 240,
    "guest-stock": 720,
    "build": 120,
    "kunit-debug": 240,     # most of this concurrently with the guests
    "guest-debug": 500,
}
SLOWEST = 10


class Clock:
    """The time that each part of a run has taken so far."""

    def __init__(self, now=time.monotonic):
        self._now = now
        self._spent = {}

    @contextlib.contextmanager
    def part(self, name):
        """Adds the elapsed time of the context to the part."""
        begun = self._now()
        try:
            yield
        finally:
            self._spent[name] = self._spent.get(name, 0.0) + self._now() - begun

    def lines(self, results):
        """Returns the parts with their budgets, and the slowest tests, as text."""
        said = ["time, in seconds     took  budget"]
        for name, spent in self._spent.items():
            budget = PARTS.get(name)
            said.append(f"  {name:<16} {spent:7.0f} {budget or '-':>7}" + ("  over" if budget and spent > budget else ""))
        slowest = sorted((result for result in results if result.seconds >= 1), key=lambda result: -result.seconds)[:SLOWEST]
        if slowest:
            said.append("the slowest tests")
            said += [f"  {result.seconds:7.1f} {result.full_name}" for result in slowest]
        return said
