# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks with tracefs that the statements of Documentation/one-packet.rst about the kernel are correct."""
import collections
import re

from lab.testing import test

from pair import STACK, interfaces_up, start_fabric, unload_stack

EVENTS = "/sys/kernel/tracing/events/weft/enable"
POINTS = {"post_send", "doorbell", "completion", "mad_sent", "mad_received", "async_event"}
DEVICE = "mlx4_0"
# IB_WC_RECV
RECEIVE = 128

Line = collections.namedtuple("Line", "point text")


def trace(node):
    """Returns the trace events since the last call, in order."""
    out = node.run("cat /sys/kernel/tracing/trace; echo > /sys/kernel/tracing/trace").out
    found = re.findall(r"^.*?\d+\.\d+: (\w+): (.*)$", out, re.MULTILINE)
    return [Line(point, text) for point, text in found if point in POINTS]


def after(lines, point, pattern):
    """Returns the lines after the first event of a tracepoint that matches the pattern, and the match."""
    for index, line in enumerate(lines):
        if line.point == point and (match := re.search(pattern, line.text)):
            return lines[index + 1:], match
    raise AssertionError(f"no {point} of {pattern!r} in:\n" + "\n".join(map(str, lines)))


def sends(lines):
    """Returns the lines after the interface's first request (QP0 and QP1 belong to others) and its doorbell, on the same QP."""
    rest, posted = after(lines, "post_send", rf"^{DEVICE} QP (0x\w\w+) opcode \d+, [1-9]\d* bytes")
    rest, _ = after(rest, "doorbell", rf"^{DEVICE} QP {posted[1]}$")
    return rest


def receives(lines):
    """Returns the lines after the first datagram that the interface has received."""
    rest, _ = after(lines, "completion", rf"^{DEVICE} QP 0x\w\w+ opcode {RECEIVE} status 0, [1-9]")
    return rest


@test(kernels=("um-debug",), also=("debug", "stock"), timeout=120)
def tracepoints_show_each_step_of_a_ping(lab):
    """The trace shows a ping being posted, the doorbell, the reception and the reply. It shows the joins before it as MADs, and the port's activation
    as an event. Without tracing nothing is recorded."""
    sockets = start_fabric(lab)
    guests = [lab.guest(f"node{number}", cards=[socket]) for number, socket in enumerate(sockets, 1)]
    with lab.boot(*guests) as (node1, node2):
        for node in (node1, node2):
            node.insmod("/share/weft_kern.ko")
            node.run(f"mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; echo 1 > {EVENTS}")
            node.insmod(*(f"/share/{name}.ko" for name in STACK if name != "weft_kern"))
        interfaces_up(node1, node2)
        for node in (node1, node2):
            before = trace(node)
            after(before, "async_event", rf"^{DEVICE} event \d+ \(port active\) of 0x1$")
            # The port joins the broadcast group by a Set of MCMemberRecord, and the SA responds.
            _, asked = after(before, "mad_sent", r"QP 1 class 0x3 method 0x2 attribute 0x38 transaction (0x\w+) status 0 ")
            after(before, "mad_received", rf"QP 1 class 0x3 method 0x81 attribute 0x38 transaction {asked[1]} ")
        assert " 0% packet loss" in node1.run("ping -c 1 -W 5 10.0.0.2").out
        trace(node1), trace(node2)

        assert " 0% packet loss" in node1.run("ping -c 1 -W 5 10.0.0.2").out
        there, back = trace(node1), trace(node2)
        receives(sends(there))
        sends(receives(back))

        # With tracing disabled again, traffic continues and nothing is recorded.
        for node in (node1, node2):
            node.run(f"echo 0 > {EVENTS}")
            trace(node)
        assert " 0% packet loss" in node1.run("ping -c 1 -W 5 10.0.0.2").out
        assert not trace(node1) and not trace(node2)
        for node in (node1, node2):
            unload_stack(node)
