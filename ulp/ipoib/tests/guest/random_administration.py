# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests random administration: random actions that depend on a seed are performed on ib0 of weft's stack under traffic, and then on ib0 of Debian's
stack.

Both stacks must accept and reject the same actions with the same results, except for the intended DIFFERENCES. After each action the peer must answer
again, and at the end no error may have been logged and nothing leaked. Every run performs a few actions on weft's stack, and compares their outcomes
with recorded outcomes of Debian's (debian_outcomes.py). A full run (scripts/test --full) performs all of them, in rounds, for two hours, and the
first round on Debian's stack, too.
"""
import json
import random as randoms
import re
import time

from lab.process import CommandFailed
from lab.testing import full, test
from lab.waiting import DeadlineExceeded

import scripted_commands
from administration import install_tool
from debian_outcomes import OUTCOMES
from pair import interfaces_up, mixed_pair, reachable, weft

SHORT = 8               # actions of every run
HOURS_S = 2 * 3600      # with --full: seconds after which no round begins


# Action, part of it, outcome on weft's stack, on Debian's (regular expressions; "-": no such line), and the reason.
DIFFERENCES = (
    ("packet_sockets", "dgram-nowhere", "EINVAL", "-", "Debian's oopses; not tried there"),
    ("attributes", "mtu (0|67)", "Error: mtu less than device minimum.", "ok|.*: Invalid argument", "IPv4 asks for 68 at the least"),
    ("attributes", "mtu 68", "ok", "RTNETLINK answers: Invalid argument", "the least that IPv4 takes; Debian's wants more"),
    ("attributes", "mtu (2045|4092)", "RTNETLINK answers: Invalid argument", "ok", "Debian's takes it, and stays at what the group has"),
    ("attributes", "mtu 6552[01]", "Error: mtu greater than device maximum.", ".*", "ours has the limit of its mode"),
    ("ethtool_shows", "-g", "ok", "netlink error: Operation not supported", "Debian's has rings of one size"),
    ("ethtool_sets", "-G .*", "ok|netlink error: Invalid argument", "netlink error: Operation not supported", "the same"),
    ("ethtool_sets", "-K ib0 (tx|tso) .*", "ok", r"tx-[\w-]+: off \[requested on\]", "what Debian's has not, and ours has not a name for"),
    ("hardware_address", "same", "ok", "RTNETLINK answers: Device or resource busy", "ours takes it while the interface is up, too"),
)


# Not run on Debian's stack: if a join ends during removal, its module crashes the kernel, as it uses a queue pair that was destroyed with the card.
OURS_ALONE = ("driver_unbound",)


def explained(command, what, one, two):
    """Returns True if a row of DIFFERENCES explains why weft's outcome is not Debian's."""
    return any(command == row[0] and re.fullmatch(row[1], what) and re.fullmatch(row[2], one) and re.fullmatch(row[3], two) for row in DIFFERENCES)


def unrecorded(ours):
    """Returns the outcomes that differ from the recorded ones of Debian's stack, and the actions that timed out."""
    found = []
    for (number, command), outcome in ours.items():
        for what, one in outcome.items():
            two = OUTCOMES.get(command, {}).get(what, one)
            if what == "never" or one != two and not explained(command, what, one, two):
                found.append(f"command {number} {command}, {what}: ours: {one}; Debian's, as recorded: {two}")
    return found


def unexplained(ours, theirs):
    """Returns the outcomes that differ between the stacks and that no row of DIFFERENCES explains."""
    found = []
    for (number, command), outcome in ours.items():
        if command in OURS_ALONE:
            continue
        other = theirs.get((number, command), {})
        for what in sorted(outcome.keys() | other.keys()):
            one, two = outcome.get(what, "-"), other.get(what, "-")
            if one != two and not explained(command, what, one, two):
                found.append(f"command {number} {command}, {what}: ours: {one}; Debian's: {two}")
    return found


class Administrator:
    """Performs the actions on one node, with the other one as its peer."""

    def __init__(self, lab, node, number, peer, must_answer=True):
        self.lab, self.node, self.number, self.peer, self.must_answer = lab, node, number, peer, must_answer
        config = node.run("zcat /proc/config.gz 2>/dev/null || true").out
        # Debian's kernel has all configuration symbols.
        self.has = (lambda option: f"CONFIG_{option}=" in config) if config else lambda option: True

    def script(self, script):
        target = f"{scripted_commands.ADDRESS}.{3 - self.number}"
        done = self.node.run(f"NUMBER={self.number} PEER={target}{scripted_commands.PRELUDE}{script}\ntrue", timeout=120)
        # A program that the guest lacks would otherwise be an action without an effect, whose outcome is not recorded.
        lacking = re.findall(r"^.*: command not found$", done.out + done.err, re.MULTILINE)
        assert not lacking, lacking
        return done

    def answers(self):
        """Waits until the peer answers. If Debian's stack has missed that its port came up (a race), the port is taken down and up again."""
        target = f"{scripted_commands.ADDRESS}.{3 - self.number}"
        try:
            reachable(self.node, target, timeout=60 if self.must_answer else 5)
        except (CommandFailed, DeadlineExceeded):
            if self.must_answer:
                raise
            self.link_pulled()
            reachable(self.node, target)

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

    def rounds(self):
        """Yields rounds of all actions in the seed's order as lists of (name, needs, script); the script is None for a method of this class."""
        draw = randoms.Random(self.lab.seed)
        while True:
            listing = [command for command in scripted_commands.drawn(draw) if not command[1] or self.has(command[1])]
            for name in ("link_pulled", "manager_away"):
                listing.insert(draw.randrange(len(listing) + 1), (name, None, None))
            yield listing

    def one(self, number, name, script):
        """Performs one action, waits until the peer answers, and returns the outcome."""
        outcome = {}
        print(self.node.name, number, name, flush=True)
        if script is None:
            getattr(self, name)()
        else:
            outcome = scripted_commands.outcome_of(self.script(script).out)
            print(json.dumps(outcome), flush=True)
        self.answers()
        return outcome

    def run(self, listing, without=()):
        """Performs all actions except some, under traffic; returns {(number, action): outcome}."""
        outcomes, done = {}, []
        traffic = self.peer.spawn(f"ping -i 0.02 -q {scripted_commands.ADDRESS}.{self.number}")
        reader = self.node.spawn("while :; do cat /proc/net/dev /sys/class/net/ib0/statistics/* /sys/class/net/ib0/mtu; ip -s link show; sleep 0.05; done >/dev/null 2>&1")
        for number, (name, _, script) in enumerate(listing):
            if name in without:
                continue
            try:
                outcomes[number, name] = self.one(number, name, script)
            except Exception as error:
                error.add_note(f"{self.node.name}, command {number}, {name}:\n{script}\nand before it: {', '.join(done[-5:])}")
                raise
            done.append(name)
        for process in (reader, traffic):
            assert process.status is None, f"`{process.command}` ended by itself:\n{process.out}{process.err}"
            process.kill()
        return outcomes


@test(kernels=("um-debug",), also=("stock", "debug"), timeout=300, full_timeout=2 * HOURS_S)
def random_administrator_actions_on_ib0_have_the_same_outcome_as_on_the_in_tree_stack(lab):
    """Each action of an administrator on ib0 has the same outcome as on Debian's stack. Traffic continues afterwards, and the kernel reports
    nothing."""
    with mixed_pair(lab) as (node1, node2):
        install_tool(lab, node1, node2)
        interfaces_up(node1, node2)
        administrator = Administrator(lab, node1, 1, node2)
        end = time.monotonic() + HOURS_S
        rounds = administrator.rounds()
        first = next(rounds)
        ours = administrator.run(first if full() else first[:SHORT])
        found = unrecorded(ours)
        assert not found, "\n".join(found)
        if not full():
            return
        theirs = Administrator(lab, node2, 2, node1, must_answer=False).run(first, without=OURS_ALONE)
        (lab.directory / "outcomes.json").write_text(json.dumps(
            {f"{number} {name}": {"ours": outcome, "theirs": theirs.get((number, name))} for (number, name), outcome in ours.items()}, indent=1))
        found = unexplained(ours, theirs)
        assert not found, "\n".join(found)
        while time.monotonic() < end:
            found = unrecorded(administrator.run(next(rounds)))
            assert not found, "\n".join(found)
