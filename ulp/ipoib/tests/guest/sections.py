# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how long the stack disables interrupts, soft interrupts or preemption while a program joins as many groups as possible."""
from lab.fabric import PAIR
from lab.testing import test
from lab.waiting import wait_until

from administration import install_tool, TOOL
from pair import interfaces_up, reachable, weft_pair

GROUPS = 20_000
LONGEST_US = 2_000
TRACING = "/sys/kernel/tracing"


def begin_tracing(node, longest_us):
    """Traces sections that are longer than a limit; the trace shows the last one with its call stack."""
    node.run(f"mountpoint -q {TRACING} || mount -t tracefs none {TRACING}")
    node.run(f"cd {TRACING} && echo 0 >tracing_on && echo {longest_us} >tracing_thresh && echo preemptirqsoff >current_tracer && echo 1 >tracing_on")


def end_tracing(node):
    node.run(f"cd {TRACING} && echo 0 >tracing_on && echo nop >current_tracer")


class LongSections:
    """The sections of weft's stack that were too long. Because the host may preempt a guest in any section, a section counts only if it was too
    long at least three times."""
    times = 3

    def __init__(self, node):
        self._node, self._last, self._found = node, None, {}

    def sample(self):
        trace = self._node.run(f"cat {TRACING}/trace").out
        if trace == self._last or "[weft_" not in trace:
            return
        self._last = trace
        ends = tuple(line.split("=>", 1)[1].strip() for line in trace.splitlines() if "=> started at:" in line or "=> ended at:" in line)
        count, _ = self._found.get(ends, (0, None))
        self._found[ends] = (count + 1, trace)

    def repeated(self):
        return [trace for count, trace in self._found.values() if count >= self.times]


@test(kernels=(), also=("debug",), timeout=900)
def joining_20000_multicast_groups_does_not_block_softirqs(lab):
    """A program joins 20,000 groups and leaves them. The stack never disables interrupts, soft interrupts or preemption for longer than 2 ms, and
    packets are delivered meanwhile."""
    with weft_pair(lab, PAIR) as (node1, node2):
        install_tool(lab, node1)
        interfaces_up(node1, node2)
        reachable(node1, "10.0.0.2")
        found = LongSections(node1)
        begin_tracing(node1, int(LONGEST_US * lab.slowness))
        listener = node1.spawn(f"ulimit -n 4096; {TOOL} listen ib0 239.9.0.0 {GROUPS}")

        def listens():
            found.sample()
            return int(node1.run("ip maddress show dev ib0 | grep -c link").out) >= GROUPS

        wait_until("the stack's list of groups", listens, 300 * lab.slowness, interval=0.5)
        reachable(node1, "10.0.0.2")
        listener.kill()

        def is_over():
            found.sample()
            return int(node1.run("ip maddress show dev ib0 | grep -c link").out) < 100

        wait_until("the end of the groups", is_over, 300 * lab.slowness, interval=0.5)
        reachable(node1, "10.0.0.2")
        end_tracing(node1)
        repeated = found.repeated()
        assert not repeated, repeated[0]
