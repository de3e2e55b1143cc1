# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reduces a schedule by delta debugging: removes steps until the kernel report would no longer occur if any single step were removed."""


def reduce(steps, fails):
    """Returns a part of a sequence, in its order, for which fails(part) is true and from which no single element can be removed. It tries to remove
    large parts first. fails() must be true for the whole sequence; it is not called twice for the same part."""
    tried = {}

    def still_fails(part):
        if part not in tried:
            tried[part] = fails(part)
        return tried[part]

    steps = tuple(steps)
    size = max(1, len(steps) // 2)
    while steps:
        before = steps
        # Start at the end, because the steps that a report needs are often early ones.
        for end in range(len(steps), 0, -size):
            shorter = steps[:max(0, end - size)] + steps[end:]
            if still_fails(shorter):
                steps = shorter
        if size == 1 and steps == before:
            break
        size = max(1, size // 2)
    return steps


def candidates(schedule, until):
    """Yields schedules that may be sufficient, the shortest first: without the steps after the report (and without the check, unless the report
    occurred there), and without the other hosts."""
    if until is not None and until <= schedule.steps[-1].at:
        schedule = schedule.but(steps=tuple(step for step in schedule.steps if step.at <= until), check=False)
    for host in schedule.hosts:
        own = tuple(step for step in schedule.steps if step.host == host)
        yield schedule.but(steps=own)
    yield schedule


def shortest(schedule, until, fails):
    """Returns the reduced schedule, with as few kinds of perturbation as possible. fails(schedule): whether it causes the same report. until: the time of the step in which the report occurred, or
    None."""
    schedule = next((each for each in candidates(schedule, until) if each.steps and fails(each)), schedule)
    kinds = reduce(schedule.perturb.split(), lambda part: fails(schedule.but(perturb=" ".join(part))))
    schedule = schedule.but(perturb=" ".join(kinds))
    return schedule.but(steps=reduce(schedule.steps, lambda steps: bool(steps) and fails(schedule.but(steps=steps))))
