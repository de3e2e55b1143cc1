# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests guests with several CPUs: each CPU has a transmit queue of its own, with its own QP, CQ and interrupt."""
import re

from lab.echo import ping
from lab.testing import test

from pair import interfaces_up, iperf3, weft_pair

CPUS = 3


def from_self(node):
    return int(re.search(r"rx_from_self: (\d+)", node.run("ethtool -S ib0").out)[1])


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def each_cpu_sends_through_its_own_transmit_queue(lab):
    """Each CPU sends through its own queue, an interface that is created later has as many queues, and no queue receives its own multicast
    packets."""
    with weft_pair(lab, cpus=CPUS) as (node1, node2):
        node1.run("ip link add link ib0 name child type ipoib pkey 0x8001")
        for dev in ("ib0", "child"):
            for cpu in range(CPUS):
                mask = node1.run(f"cat /sys/class/net/{dev}/queues/tx-{cpu}/xps_cpus").out
                assert int(mask, 16) == 1 << cpu, (dev, cpu, mask)
        interfaces_up(node1, node2)
        for cpu in range(CPUS):
            used = f"/sys/class/net/ib0/queues/tx-{cpu}/byte_queue_limits/limit"
            node1.run("ip link set ib0 down && ip link set ib0 up")
            node1.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what="the carrier of ib0")
            before = from_self(node1)
            ping(node1, node2, "10.0.0.2", 300, "-f -s 1000", on=f"taskset -c {cpu}")
            assert int(node1.run(f"cat {used}").out) > 0, f"CPU {cpu} did not use its queue"
            node2.run("sysctl -q net.ipv4.icmp_echo_ignore_broadcasts=0")
            out = node1.run(f"taskset -c {cpu} ping -c 3 -i 0.2 -W 5 -L -I ib0 224.0.0.1", check=False).out
            assert "10.0.0.2" in out and "10.0.0.1:" not in out, out
            # The card does not deliver multicast packets to the QP that sent them, but to the interface's other QPs.
            assert cpu == 0 or from_self(node1) - before >= 3
        for options in ("-P 4", "-P 4 -R"):
            assert iperf3(node2, node1, "10.0.0.2", options)["sum_received"]["bytes"] > 1_000_000
