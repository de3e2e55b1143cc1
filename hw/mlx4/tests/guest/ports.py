# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests cards with two ports. The peer's guest uses weft's modules or Debian's in-tree stack."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.fabric import TWO_PORTS, Fabric
from lab.testing import test
from traffic import Node, peer, peer_kernel, peer_kernels

WITH_IPOIB = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_mlx4", "weft_ipoib", "weft_traffic")


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
    """Returns the number of packets that a port has sent, except multicast."""
    return int(node.guest.read(f"/sys/class/infiniband/mlx4_0/ports/{port}/counters/unicast_xmit_packets"))


def load(node):
    if node.in_kernel:
        node.load(*WITH_IPOIB)
    else:
        node.load()
        node.guest.run("modprobe ib_ipoib")


def check_both_ports(lab, stock_peer):
    fabric = Fabric(lab, TWO_PORTS, kernel_of=peer_kernels(stock_peer))
    sockets = fabric.sockets
    with lab.boot(lab.guest("node1", cards=[sockets[0]]), lab.guest("node2", cards=[sockets[1]], **peer_kernel(stock_peer))) as guests:
        nodes = node1, node2 = Node(guests[0]), peer(lab, guests[1], stock_peer)
        for node in nodes:
            load(node)
        for node in nodes:
            for port in (1, 2):
                node.wait_active(port=port)
        lids = {node.open(type="ud", port=port).answer["lid"] for node in nodes for port in (1, 2)}
        assert len(lids) == 4, lids
        for port in (1, 2):
            check_verbs(node1, node2, port)
            before = [packets(node1, each) for each in (1, 2)]
            check_verbs(node1, node2, port, kinds=["ud"])
            counted = [packets(node1, each) - before[each - 1] for each in (1, 2)]
            assert counted[port - 1] >= 30 > counted[2 - port], (port, counted)

        # A datagram's address is one of its QP's port (IB_DEVICE_UD_AV_PORT_ENFORCE).
        one, two = (node.open(type="ud", port=1) for node in nodes)
        one.connect(**two.address, av_port=2)
        mistaken = one.send(count=1, size=100)
        assert mistaken["status"] == "local QP operation error", mistaken[""]

        # Both interfaces are in one broadcast group: each is to answer for its own address only.
        for number, guest in enumerate(guests, 1):
            guest.run("sysctl -q net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2")
            for port in (0, 1):
                guest.run(f"ip addr add 10.0.{port}.{number}/24 dev ib{port} && ip link set ib{port} up")

        def ping(interface):
            guests[0].wait_for(f"ping -c 1 -W 2 -q -I ib{interface} 10.0.{interface}.2", timeout=60, what=f"an answer over ib{interface}")

        ping(0)
        ping(1)
        before = node1.events()
        fabric.weft("link", "down", "node1/1")
        guests[0].wait_for_carrier(there=False)
        check_verbs(node1, node2, 2)
        ping(1)
        fabric.weft("link", "up", "node1/1")
        node1.wait_active(port=1)
        check_verbs(node1, node2, 1)
        ping(0)
        after = node1.events()
        assert [after.get(name, 0) - before.get(name, 0) for name in ("port error", "port active")] == [1, 1], (before, after)
        for node in nodes:
            if node.in_kernel:
                node.guest.run(["rmmod", *reversed(WITH_IPOIB)])


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def both_ports_carry_traffic(lab):
    """Each port of a card gets a LID, and RC, UD, QP1 and IP traffic passes through both. If one goes down, the other is not affected, and event
    handlers are notified."""
    check_both_ports(lab, stock_peer=False)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def both_ports_carry_traffic_to_a_peer_on_the_debian_rdma_stack(lab):
    """Both ports carry traffic to a peer on Debian's stack."""
    check_both_ports(lab, stock_peer=True)
