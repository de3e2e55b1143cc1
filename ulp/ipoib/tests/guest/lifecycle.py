# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Interfaces that come and go under traffic: nothing is lost for good, stuck or leaked."""
from lab.testing import test

from pair import interfaces_up, iperf3, load_suite, weft, weft_pair

REMOVE = "rmmod weft_ipoib weft_connectx weft_mad weft_core weft_kern"


def reachable(source, target, timeout=60):
    source.wait_for(f"ping -c 1 -W 1 -q {target}", timeout=timeout, what=f"an answer of {target} to {source.name}")


@test(kernels=("plain", "debug"), timeout=400)
def down_and_up_under_traffic(lab):
    """An interface taken down and up again and again while its peer floods it comes back each time."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        flood = node2.spawn("ping -f -q -w 600 10.0.0.1")
        rounds = 20 if lab.kernel == "debug" else 100
        node1.run(f"for i in $(seq {rounds}); do ip link set ib0 down; ip link set ib0 up; done", timeout=300)
        reachable(node1, "10.0.0.2")
        flood.kill()
        # In the middle of joining and resolving, too.
        node1.run("for i in $(seq 10); do ip link set ib0 down; ip link set ib0 up; sleep 0.1; done", timeout=300)
        reachable(node1, "10.0.0.2")
        for node in (node1, node2):
            node.run(REMOVE)


@test(kernels=("plain", "debug"), timeout=400)
def link_and_manager_come_and_go(lab):
    """The carrier follows the cable; traffic goes on after link flaps, an SM that restarts, and a sweep."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        reachable(node1, "10.0.0.2")
        for _ in range(10):
            weft(lab, "link", "down", "node1")
            node1.wait_for("ip link show dev ib0 | grep -q NO-CARRIER", timeout=30, what="the loss of the carrier")
            weft(lab, "link", "up", "node1")
            node1.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what="the carrier's return")
            reachable(node1, "10.0.0.2")
            reachable(node2, "10.0.0.1")
        weft(lab, "sm", "disable")
        assert " 0% packet loss" in node1.run("ping -c 5 -i 0.2 -W 5 10.0.0.2").out
        weft(lab, "sm", "enable")
        weft(lab, "sm", "sweep")
        reachable(node1, "10.0.0.2")
        for node in (node1, node2):
            node.run(REMOVE)


@test(kernels=("plain", "debug"), timeout=400)
def modules_and_cards_leave_under_traffic(lab):
    """The modules are removed and inserted while pings run, and the card is taken out from under them."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for _ in range(3):
            flood = node1.spawn("ping -f -q -w 600 10.0.0.2")
            back = node2.spawn("ping -f -q -w 600 10.0.0.1")
            node1.run("rmmod weft_ipoib", timeout=60)
            node1.run("rmmod weft_connectx weft_mad weft_core weft_kern", timeout=60)
            flood.kill()
            back.kill()
            load_suite(node1)
            interfaces_up(node1)
            reachable(node1, "10.0.0.2")
        back = node2.spawn("ping -f -q -w 600 10.0.0.1")
        flood = node1.spawn("ping -f -q -w 600 10.0.0.2")
        card = node1.run("basename $(readlink -f /sys/bus/pci/drivers/weft_connectx/0*)").out.strip()
        node1.run(f"echo 1 > /sys/bus/pci/devices/{card}/remove", timeout=60)
        assert node1.run("ip -o link").out.count("ib0") == 0
        node1.run("echo 1 > /sys/bus/pci/rescan", timeout=60)
        flood.kill()
        interfaces_up(node1)
        reachable(node1, "10.0.0.2")
        back.kill()
        for node in (node1, node2):
            node.run(REMOVE)


@test(kernels=("plain", "debug"), timeout=300)
def loss_on_the_link(lab):
    """TCP survives a link that loses one packet in a hundred."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        weft(lab, "link", "set", "node1", "loss=1%")
        end = iperf3(node2, node1, "10.0.0.2")
        assert end["sum_received"]["bytes"] > 100_000, end
        assert end["sum_sent"]["retransmits"] > 0, end
        for node in (node1, node2):
            node.run(REMOVE)
