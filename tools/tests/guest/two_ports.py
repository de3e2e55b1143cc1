# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that both ports of a two-port card carry traffic independently of each other, with Debian's drivers."""
from lab.fabric import TWO_PORTS
from lab.testing import test

from stock import active, check, guests, interfaces_up, lid, load, ping, served


def works(fabric, node1, node2):
    """Checks both ports between guests that have their drivers loaded."""
    active(node1, node2, ports=2)
    assert len({lid(node, port) for node in (node1, node2) for port in (1, 2)}) == 4
    assert node1.run("ibstat").out.count("State: Active") == 2
    # Both interfaces are in one broadcast group, and each must answer only for its own address.
    for node in (node1, node2):
        node.run("sysctl -q net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2")
    interfaces_up(node1, node2, dev="ib0", network="10.0.0")
    interfaces_up(node1, node2, dev="ib1", network="10.0.1")
    for interface, network in (("ib0", "10.0.0"), ("ib1", "10.0.1")):
        with check(f"pings pass over {interface}"):
            ping(node1, node2, f"{network}.2", 200, f"-f -I {interface}")
            ping(node2, node1, f"{network}.1", 200, f"-f -I {interface}")
    for port in (1, 2):
        with check(f"verbs examples pass over port {port}"):
            for transport in ("rc", "ud"):
                for out in served(node1, node2, f"ibv_{transport}_pingpong -c -n 200 -s 1024 -i {port}"):
                    assert "200 iters in" in out, out
    with check("port 2 counts the packets of traffic over port 2"):
        count = "cat /sys/class/infiniband/*/ports/{}/counters/port_xmit_packets"
        before = [int(node1.run(count.format(port)).out) for port in (1, 2)]
        ping(node1, node2, "10.0.1.2", 200, "-f -I ib1")
        after = [int(node1.run(count.format(port)).out) for port in (1, 2)]
        assert after[0] - before[0] < 50 and after[1] - before[1] >= 200, (before, after)
    with check("ib1 carries traffic while the link of port 1 is down"):
        fabric.weft("link", "down", "node2/1")
        node2.wait_for("ip link show dev ib0 | grep -q NO-CARRIER", what="the loss of ib0's carrier")
        active(node2, ports=1)
        ping(node1, node2, "10.0.1.2", 200, "-f -I ib1")
        fabric.weft("link", "up", "node2/1")
        active(node2, ports=2)
        ping(node1, node2, "10.0.0.2", 200, "-f -I ib0")


@test(kernels=("stock",), timeout=180)
def both_ports_carry_traffic_independently(lab):
    """Both ports of both cards are active, each with its own LID, and carry traffic of ib0, ib1 and verbs. One works while the other is down."""
    with guests(lab, TWO_PORTS) as (fabric, (node1, node2)):
        load(node1, node2)
        works(fabric, node1, node2)
