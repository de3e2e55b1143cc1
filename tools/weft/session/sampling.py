# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Computes and applies the changes from one sample of a fabric's state to the next, because only the changes are sent (weftd(1), fabric.sample).
Unchanged values are shared between a sample and the next one, so that samples are cheap to keep and to compare."""
import itertools
import time

# The members of a sample. Those of the second and third line are missing in one that contains only changes, if they have not changed.
ALWAYS = ("time", "generation", "subnet_manager", "missing")
MEMBERS = ("columns", "down", "guests")
ETHERNET_MEMBERS = ("columns", "links", "attached")
MOST_NAMES = 10000      # characters of the names of a card's counters


def generations():
    """Returns numbers for samples. They begin at the time of day in microseconds, as weftd's do, so that a server that was started again does not use those of
    the former one."""
    return itertools.count(time.time_ns() // 1000)


def _replaced(before, changes, allowed):
    """Returns the values by name. Raises ValueError if a name is new or if values are not allowed, so that the sample does not grow with each answer."""
    if not changes.keys() <= before.keys() or not all(map(allowed, changes.values())):
        raise ValueError("a sample does not match the one before")
    return {**before, **changes} if changes else before


def _are_counters(values):
    return all(0 <= value < 1 << 64 for value in values)


def _of_card(counts):
    return sum(map(len, counts)) <= MOST_NAMES and _are_counters(counts.values())


def _present(answer, names):
    return {name: answer[name] for name in names if answer.get(name) is not None}


def merged(before, answer):
    """Returns the complete sample after an answer to fabric.sample. before: the last complete sample; None if there is none. Raises ValueError if the
    answer does not match."""
    if answer.get("since") is None:
        if any(answer.get(name) is None for name in MEMBERS) or any(answer["ethernet"].get(name) is None for name in ETHERNET_MEMBERS):
            raise ValueError("a sample is incomplete")
        return answer
    if before is None or answer["since"] != before.get("generation"):
        raise ValueError("a sample contains the changes of another one")
    result = {**before, "subnet_manager": answer.get("subnet_manager"), **_present(answer, (*ALWAYS, *MEMBERS))}
    ethernet = result["ethernet"] = {**before["ethernet"], **_present(answer["ethernet"], ETHERNET_MEMBERS)}
    for into, old, new in ((result, before, answer), (ethernet, before["ethernet"], answer["ethernet"])):
        width = len(old["columns"])
        into["columns"] = old["columns"]
        into["ports"] = _replaced(old["ports"], new["ports"], lambda values, width=width: len(values) == width and _are_counters(values))
    if before.get("cards") is not None:
        result["cards"] = _replaced(before["cards"], answer.get("cards") or {}, _of_card)
    return result


def _different(before, now):
    """Returns the values by name that are not those of before; None if the names differ."""
    if before is now:
        return {}
    if before.keys() != now.keys():
        return None
    return {name: values for name, values in now.items() if values is not (old := before[name]) and values != old}


def changes(before, now):
    """Returns an answer with what has changed from one complete sample to the next; None if only a complete answer is possible."""
    result = {"since": before["generation"], **{name: now[name] for name in ALWAYS if name in now}}
    ethernet = result["ethernet"] = {}
    for into, old, new, members in ((result, before, now, MEMBERS), (ethernet, before["ethernet"], now["ethernet"], ETHERNET_MEMBERS)):
        if old["columns"] != new["columns"] or (ports := _different(old["ports"], new["ports"])) is None:
            return None
        into["ports"] = ports
        into |= {name: new[name] for name in members if new[name] != old[name]}
    if "cards" in now:
        if (cards := _different(before.get("cards", {}), now["cards"])) is None:
            return None
        result["cards"] = cards
    return result
