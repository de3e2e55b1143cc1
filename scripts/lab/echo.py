# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Pings whose answers the kernel counts: ping itself waits for the last ones only twice as long as the slowest so far took."""
from lab.waiting import DeadlineExceeded, wait_until


def answers(node):
    """How many echo replies have arrived."""
    names, values = (line.split() for line in node.run("grep ^Icmp: /proc/net/snmp").out.splitlines())
    return int(values[names.index("InEchoReps")])


def unanswered(source, target, count, options="-f", timeout=120):
    """Sends count pings; returns how many have no answer 10 s after the last. No other ping may run on source."""
    before = answers(source)
    out = source.run(f"ping -q -c {count} {options} {target}", timeout, check=False).out
    assert f"{count} packets transmitted" in out, out
    try:
        wait_until(f"{source.name}: the last answers of {target}", lambda: answers(source) - before >= count, 10 * source.slowness)
    except DeadlineExceeded:
        pass
    return count - (answers(source) - before)
