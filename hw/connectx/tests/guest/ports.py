# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Cards of two ports."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.fabric import TWO_PORTS, Fabric
from lab.testing import test
from traffic import Node

CARD = "/sys/bus/pci/devices/0000:01:00.0"
MODULES = ("weft_kern", "weft_core", "weft_mad", "weft_connectx", "weft_ipoib", "weft_traffic")


def check_verbs(node1, node2, port, kinds=("rc", "ud")):
    for kind in kinds:
        one, two = node1.open(type=kind, port=port), node2.open(type=kind, port=port)
        one.join(two)
        for sender, receiver in ((one, two), (two, one)):
            receiver.post(count=30, size=1000)
            assert sender.send(count=30, size=1000, seed=port)["done"] == "30"
            assert receiver.receive(count=30, size=1000, seed=port)["good"] == "30"
        one.close()
        two.close()


def packets(node, port):
    """What a port has sent, but for multicast."""
    return int(node.guest.run(f"cat {CARD}/infiniband/mlx4_0/ports/{port}/counters/unicast_xmit_packets").out)


@test(kernels=("plain", "debug"), timeout=300)
def both_ports_carry_traffic(lab):
    """Both ports of a card come up with a LID each, and RC, UD, QP1 and IP pass by either; one that goes down leaves the other alone."""
    fabric = Fabric(lab, TWO_PORTS)
    with lab.boot(*(lab.guest(name, vfio_user=[socket]) for name, socket in zip(("node1", "node2"), fabric.sockets))) as guests:
        nodes = node1, node2 = [Node(guest) for guest in guests]
        for node in nodes:
            node.load(*MODULES)
        for node in nodes:
            for port in (1, 2):
                node.wait_active(port=port)
        lids = {node.open(type="ud", port=port).answer["lid"] for node in nodes for port in (1, 2)}
        assert len(lids) == 4, lids
        for port in (1, 2):
            check_verbs(node1, node2, port)
            before = [packets(node2, each) for each in (1, 2)]
            check_verbs(node1, node2, port, kinds=["ud"])
            counted = [packets(node2, each) - before[each - 1] for each in (1, 2)]
            assert counted[port - 1] >= 30 > counted[2 - port], (port, counted)

        # Both interfaces are in one broadcast group: each is to answer for its own address only.
        for number, guest in enumerate(guests, 1):
            guest.run("sysctl -q net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2")
            for port in (0, 1):
                guest.run(f"ip addr add 10.0.{port}.{number}/24 dev ib{port} && ip link set ib{port} up")

        def ping(interface):
            guests[0].wait_for(f"ping -c 1 -W 2 -q -I ib{interface} 10.0.{interface}.2", timeout=60, what=f"an answer over ib{interface}")

        ping(0)
        ping(1)
        fabric.weft("link", "down", "node2/1")
        guests[1].wait_for("ip link show dev ib0 | grep -q NO-CARRIER", timeout=30, what="the loss of ib0's carrier")
        check_verbs(node1, node2, 2)
        ping(1)
        fabric.weft("link", "up", "node2/1")
        node2.wait_active(port=1)
        check_verbs(node1, node2, 1)
        ping(0)
        for guest in guests:
            guest.run(["rmmod", *reversed(MODULES)])
