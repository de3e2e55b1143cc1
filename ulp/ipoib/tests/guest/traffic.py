# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests traffic over ib0: common network programs, between weft's guests and against Debian's in-tree stack."""
import re

from lab.echo import ping
from lab.testing import test

from pair import interfaces_up, iperf3, lost_sizes, mixed_pair, weft_pair

# Sizes around the link's MTU of 2044, around fragments, and around a page.
SIZES = (0, 1, 55, 1400, 2015, 2016, 2017, 4031, 4032, 4033, 4096, 16000, 65507)


def check_sizes(node1, node2):
    for source, target in ((node1, "10.0.0.2"), (node2, "10.0.0.1")):
        assert not (lost := lost_sizes(source, target, SIZES)), (source.name, lost)


def check_floods(lab, node1, node2):
    ping(node1, node2, "10.0.0.2", count := lab.rounds(2000, 100_000), timeout=60 + count / 100)
    ping(node2, node1, "10.0.0.1", count := lab.rounds(1000, 100_000), "-f -s 1400", timeout=60 + count / 100)


def check_iperf3(node1, node2):
    for options in ("", "-R", "-P 4"):
        end = iperf3(node2, node1, "10.0.0.2", options)
        assert end["sum_received"]["bytes"] > 1_000_000, end
    end = iperf3(node2, node1, "10.0.0.2", "-u -b 20M -l 1400")
    assert end["sum"]["bytes"] > 1_000_000, end


def check_multicast(node1, node2):
    """A multicast ping by IPv4 and one by IPv6, each way."""
    for source, target, other in ((node1, node2, "10.0.0.2"), (node2, node1, "10.0.0.1")):
        target.run("sysctl -q net.ipv4.icmp_echo_ignore_broadcasts=0")
        assert other in source.run("ping -c 2 -W 5 -I ib0 224.0.0.1", check=False).out
        assert link_local(target) in source.run("ping -c 2 -W 5 ff02::1%ib0", check=False).out


def link_local(node):
    return node.run("ip -o -6 addr show dev ib0 scope link | awk '{print $4}'").out.split("/")[0].strip()


def check_neighbour_discovery(node1, node2):
    """IPv6 finds the peer by neighbour discovery, with its 20-byte hardware address, and again after it is forgotten."""
    for source, target in ((node1, node2), (node2, node1)):
        address = link_local(target)
        hardware = target.read("/sys/class/net/ib0/address")
        for _ in range(2):
            source.run("ip -6 neigh flush dev ib0")
            assert not lost_sizes(source, f"{address}%ib0", (56, 56))
            assert hardware in source.run(f"ip -6 neigh show {address} dev ib0").out.lower()


def segmented(node):
    return int(re.search(r"\btx_segmented: (\d+)", node.run("ethtool -S ib0").out)[1])


def check_ipv6_offloads(node1, node2):
    """The card segments TCP over IPv6 and computes the checksums, and the receiver's stack verifies them in software."""
    features = node1.run("ethtool -k ib0").out
    for name in ("tx-checksum-ipv4", "tx-checksum-ipv6", "tx-tcp-segmentation", "tx-tcp6-segmentation"):
        assert f"{name}: on" in features, features
    before = segmented(node1)
    node2.run("ethtool -K ib0 rx off")
    end = iperf3(node2, node1, f"{link_local(node2)}%ib0")
    node2.run("ethtool -K ib0 rx on")
    assert end["sum_received"]["bytes"] > 1_000_000, end
    assert segmented(node1) > before
    shown = node2.run("nstat -az TcpInCsumErrors").out
    assert re.search(r"^TcpInCsumErrors +0 ", shown, re.MULTILINE), shown


def check_traffic(lab, node1, node2):
    check_sizes(node1, node2)
    check_floods(lab, node1, node2)
    check_iperf3(node1, node2)
    check_multicast(node1, node2)
    check_neighbour_discovery(node1, node2)
    check_ipv6_offloads(node1, node2)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def ip_traffic_passes_between_weft_guests(lab):
    """Pings of all sizes, flood pings, TCP, UDP, multicast and neighbour discovery work between two guests with weft's stack."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        check_traffic(lab, node1, node2)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def ip_traffic_passes_between_weft_and_stock_stacks(lab):
    """The same traffic passes between weft's stack and Debian's, in both directions."""
    with mixed_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        check_traffic(lab, node1, node2)
