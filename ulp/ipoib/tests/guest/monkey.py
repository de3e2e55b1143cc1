# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""An administrator's monkey: acts drawn from a seed, done to ib0 of our stack under traffic, and then to that of Debian's.

What Linux refuses must be refused alike, and what it allows must work alike, but for DIFFERENCES, which are meant. After each act the peer
answers again, and at the end nothing has been reported or leaked.
"""
import json
import random as randoms
import re

from lab.testing import test

import acts
from administration import install_tool
from pair import interfaces_up, mixed_pair, reachable, weft


# Act, what of it, the outcome with ours, with Debian's (regular expressions; "-": no such line), and why.
DIFFERENCES = (
    ("packet_sockets", "dgram-nowhere", "EINVAL", "-", "Debian's oopses; not tried there"),
)


def unexplained(ours, theirs):
    """Where the outcomes differ and no row of DIFFERENCES says why."""
    found = []
    for (number, act), outcome in ours.items():
        other = theirs.get((number, act), {})
        for what in sorted(outcome.keys() | other.keys()):
            one, two = outcome.get(what, "-"), other.get(what, "-")
            if one != two and not any(act == row[0] and re.fullmatch(row[1], what) and re.fullmatch(row[2], one) and re.fullmatch(row[3], two)
                                      for row in DIFFERENCES):
                found.append(f"act {number} {act}, {what}: ours: {one}; Debian's: {two}")
    return found


class Monkey:
    """One stack's side of it: the acts on one node, with the other as its peer."""

    def __init__(self, lab, node, number, peer):
        self.lab, self.node, self.number, self.peer = lab, node, number, peer
        config = node.run("zcat /proc/config.gz 2>/dev/null || true").out
        # Debian's kernel has all of it.
        self.has = (lambda option: f"CONFIG_{option}=" in config) if config else lambda option: True

    def script(self, script):
        target = f"{acts.ADDRESS}.{3 - self.number}"
        return self.node.run(f"NUMBER={self.number} PEER={target}{acts.PRELUDE}{script}\ntrue", timeout=120)

    def answers(self, name):
        """The peer answers, without which ib0 must say that it cannot be reached; here it always can."""
        reachable(self.node, f"{acts.ADDRESS}.{3 - self.number}")

    def link_pulled(self):
        name = f"node{self.number}"
        weft(self.lab, "link", "down", name)
        self.node.wait_for("ip link show dev ib0 | grep -q NO-CARRIER", what="the loss of the carrier")
        weft(self.lab, "link", "up", name)
        self.node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what="the carrier's return")

    def manager_away(self):
        weft(self.lab, "sm", "disable")
        self.script("try down ip link set ib0 down; home; ping -c 1 -W 1 -q $PEER >/dev/null")
        weft(self.lab, "sm", "enable")
        weft(self.lab, "sm", "sweep")

    def run(self, rounds):
        """All acts of the seed, under traffic; {(number, act): outcome}."""
        draw = randoms.Random(self.lab.seed)
        outcomes = {}
        traffic = self.peer.spawn(f"ping -i 0.02 -q -w 3000 {acts.ADDRESS}.{self.number}")
        reader = self.node.spawn("while :; do cat /proc/net/dev /sys/class/net/ib0/statistics/* /sys/class/net/ib0/mtu; ip -s link show; sleep 0.05; done >/dev/null 2>&1")
        listing = [(name, needs, script) for name, needs, script in acts.drawn(draw, rounds)]
        for place in range(rounds):
            listing.insert(draw.randrange(len(listing) + 1), ("link_pulled", None, None))
            listing.insert(draw.randrange(len(listing) + 1), ("manager_away", None, None))
        for number, (name, needs, script) in enumerate(listing):
            if needs and not self.has(needs):
                continue
            try:
                print(number, name, flush=True)
                if script is None:
                    getattr(self, name)()
                else:
                    outcomes[number, name] = acts.outcome_of(self.script(script).out)
                    print(json.dumps(outcomes[number, name]), flush=True)
                self.answers(name)
            except Exception as error:
                error.add_note(f"{self.node.name}, act {number}, {name}:\n{script}\nand before it: "
                               + ", ".join(entry[0] for entry in listing[max(0, number - 5):number]))
                raise
        reader.kill()
        traffic.kill()
        return outcomes


@test(kernels=("stock", "debug"), timeout=300)
def an_administrators_monkey(lab):
    """Whatever an administrator does to ib0, it ends as it does on Debian's stack, traffic returns, and nothing is reported."""
    with mixed_pair(lab) as (node1, node2):
        install_tool(lab, node1, node2)
        interfaces_up(node1, node2)
        rounds = lab.rounds(1, 50)
        ours = Monkey(lab, node1, 1, node2).run(rounds)
        theirs = Monkey(lab, node2, 2, node1).run(rounds)
        (lab.directory / "outcomes.json").write_text(json.dumps(
            {f"{number} {name}": {"ours": outcome, "theirs": theirs.get((number, name))} for (number, name), outcome in ours.items()}, indent=1))
        found = unexplained(ours, theirs)
        assert not found, "\n".join(found)
