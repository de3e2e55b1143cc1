# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Traffic over ib0: what users run on it, on our stack and against Debian's own."""
import contextlib

from lab.testing import test

from pair import interfaces_up, iperf3, load_suite, start_fabric, weft_pair


def flood(source, target, count, options=""):
    """A flood ping; returns how many of the packets were lost."""
    out = source.run(f"ping -f -q -c {count} -W 5 {options} {target}", timeout=120, check=False).out
    sent, received = (int(out.split(word)[0].split()[-1]) for word in (" packets transmitted", " received"))
    assert sent == count, out
    return sent - received


def check_traffic(node1, node2, pings=2000):
    """Flood pings both ways, TCP both ways, UDP, and a multicast ping."""
    assert flood(node1, "10.0.0.2", pings) == 0
    assert flood(node2, "10.0.0.1", pings // 2, "-s 1400") == 0
    for options in ("", "-R", "-P 4"):
        end = iperf3(node2, node1, "10.0.0.2", options)
        assert end["sum_received"]["bytes"] > 1_000_000, end
    end = iperf3(node2, node1, "10.0.0.2", "-u -b 20M -l 1400")
    assert end["sum"]["bytes"] > 1_000_000, end
    node2.run("sysctl -q net.ipv4.icmp_echo_ignore_broadcasts=0")
    assert "10.0.0.2" in node1.run("ping -c 2 -W 5 -I ib0 224.0.0.1", check=False).out


@test(kernels=("plain", "stock", "debug"), timeout=300)
def traffic_between_ours(lab):
    """Floods, TCP, UDP and multicast pass between two guests on our stack."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        check_traffic(node1, node2)
        for node in (node1, node2):
            node.run("rmmod weft_ipoib weft_connectx weft_mad weft_core weft_kern")


@contextlib.contextmanager
def mixed_pair(lab):
    """The first guest on our stack, the second on Debian's kernel and its own modules."""
    sockets = start_fabric(lab)
    ours = lab.guest("node1", vfio_user=[sockets[0]])
    theirs = lab.guest("node2", vfio_user=[sockets[1]], kernel="stock")
    with lab.boot(ours, theirs) as (node1, node2):
        load_suite(node1)
        node2.run("modprobe mlx4_ib && modprobe ib_ipoib", timeout=60)
        node2.wait_for("ip link show dev ib0", timeout=60, what="ib0 of the stock stack")
        yield node1, node2


@test(kernels=("plain", "stock", "debug"), timeout=300)
def traffic_with_the_stock_stack(lab):
    """The same passes between our stack and the one that Debian ships, in both directions."""
    with mixed_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        check_traffic(node1, node2, pings=1000)
