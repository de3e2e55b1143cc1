# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests less common configurations of interfaces: a child interface in another partition, large datagrams, other ring sizes and moderation."""
from lab.echo import ping
from lab.fabric import PAIR
from lab.testing import test

from pair import interfaces_up, lost_sizes, mixed_pair, weft_pair

LARGE = PAIR + """[sm]
[[sm.partition]]
name = "default"
pkey = 0xffff
others = "full"
ipoib = true
mtu = 4096
[[sm.partition]]
name = "storage"
pkey = 0x8001
others = "full"
ipoib = true
mtu = 4096
"""


def check_large_datagrams_and_a_child(node1, node2):
    interfaces_up(node1, node2)
    for node in (node1, node2):
        node.wait_for("ip link show dev ib0 | grep -q 'mtu 4092'", timeout=30, what="an interface of 4092 bytes")
    for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
        assert not lost_sizes(source, target, 3 * (4064,), "-M do")
        assert " 0% packet loss" in source.run(f"ping -c 1 -W 5 -s 65507 {target}").out
    for node in (node1, node2):
        node.run("ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001")
    interfaces_up(node1, node2, dev="ib0.8001", network="10.0.1")
    for source, target in ((node1, "10.0.1.2"), (node2, "10.0.1.1")):
        assert not lost_sizes(source, target, 3 * (56,), "-I ib0.8001")
    assert "0x8001" in node1.run("ip -d link show dev ib0.8001 | grep -o 'ipoib.*'").out


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def interface_with_mtu_4092_and_its_child_carry_traffic(lab):
    """A broadcast group with MTU 4096 gives the interface an MTU of 4092. A child in another partition carries traffic at the same time as its
    parent."""
    with weft_pair(lab, LARGE) as (node1, node2):
        check_large_datagrams_and_a_child(node1, node2)
        # Another child of the same partition and one of the parent's partition also carry traffic; sysfs creates only one child for each P_Key.
        for number, (name, words) in enumerate((("again", "pkey 0x8001"), ("pod1", "")), 2):
            node1.run(f"ip link add link ib0 name {name} type ipoib {words}")
            node1.run(f"ip link set {name} up; ip address add 10.0.{number}.1/24 dev {name}")
            peer = "ib0.8001" if words else "ib0"
            node2.run(f"ip address add 10.0.{number}.2/24 dev {peer}")
            node1.wait_for_carrier(name)
            assert not lost_sizes(node1, f"10.0.{number}.2", 3 * (56,), f"-I {name}")
        node1.put("/sys/class/net/ib0/create_child", "0x8002\n")
        for pkey in ("0x8002", "0x7fff"):
            assert node1.put("/sys/class/net/ib0/create_child", f"{pkey}\n", check=False).status != 0
        assert node1.run("ip link add link ib0.8001 name deeper type ipoib pkey 0x8002", check=False).status != 0
        node1.run("ip link del ib0.8001")
        assert not lost_sizes(node1, "10.0.0.2", 3 * (56,))


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def interface_with_mtu_4092_and_its_child_carry_traffic_with_a_peer_on_the_stock_stack(lab):
    """Large datagrams and a child carry traffic in both directions to a peer on Debian's stack."""
    with mixed_pair(lab, LARGE) as (node1, node2):
        check_large_datagrams_and_a_child(node1, node2)


@test(kernels=("stock",), also=("plain", "debug"), timeout=300)
def ethtool_sets_ring_sizes_and_interrupt_moderation(lab):
    """ethtool changes ring sizes while the interface is down, rejects invalid values, and sets the moderation at any time."""
    with weft_pair(lab) as (node1, node2):
        assert node1.run("ethtool -G ib0 rx 1000", check=False).status != 0
        node1.run("ethtool -G ib0 rx 128 tx 256")
        assert "RX:\t\t128" in node1.run("ethtool -g ib0").out.split("Current")[1]
        interfaces_up(node1, node2)
        assert node1.run("ethtool -G ib0 rx 256", check=False).status != 0
        assert "Adaptive RX: on  TX: on" in node1.run("ethtool -c ib0").out
        for usecs, frames in ((0, 0), (1000, 64), (16, 32)):
            node1.run(f"ethtool -C ib0 adaptive-rx off rx-usecs {usecs} rx-frames {frames} adaptive-tx off tx-usecs {usecs} tx-frames {frames}")
            shown = node1.run("ethtool -c ib0").out
            assert "Adaptive RX: off  TX: off" in shown
            for end in ("rx", "tx"):
                assert f"{end}-usecs: {usecs}\n" in shown and f"{end}-frames: {frames}\n" in shown, shown
            ping(node1, node2, "10.0.0.2", 200)
        assert node1.run("ethtool -C ib0 rx-usecs 70000", check=False).status != 0
        node1.run("ethtool -C ib0 adaptive-rx on adaptive-tx on")
        ping(node1, node2, "10.0.0.2", 200)
        counters = node1.run("ethtool -S ib0").out
        assert "tx_doorbells" in counters and "rx_polls" in counters
        assert "weft_ipoib" in node1.run("ethtool -i ib0").out
