# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that interfaces can be created and removed under traffic: traffic recovers, nothing hangs and nothing leaks. Each test runs with a peer on weft's
modules and with one on Debian's in-tree stack."""
import json

from lab.echo import ping
from lab.fabric import PAIR
from lab.testing import test
from lab.waiting import wait_until

from pair import interfaces_up, iperf3, load_stack, mixed_pair, reachable, weft, weft_pair

MODULES = "weft_mlx4 weft_cm weft_mad weft_core weft_kern"


def down_and_up(lab, node1, node2):
    flood = node2.spawn("ping -f -q -w 600 10.0.0.1")
    rounds = lab.rounds(20 if lab.kernel in ("debug", "um-debug") else 100, 100)
    node1.put("/tmp/flaps", "link set ib0 down\nlink set ib0 up\n" * rounds)
    node1.run("ip -batch /tmp/flaps", timeout=300)
    reachable(node1, "10.0.0.2")
    flood.kill()
    # The interface also goes down while it joins groups and resolves paths.
    node1.run("for i in $(seq 10); do ip link set ib0 down; ip link set ib0 up; sleep 0.1; done", timeout=300)
    reachable(node1, "10.0.0.2")


def link_flaps(lab, node1, node2):
    """The carrier follows the state of the link, and traffic resumes with it."""
    reachable(node1, "10.0.0.2")
    flood = node2.spawn("ping -f -q -w 3000 10.0.0.1")
    for _ in range(lab.rounds(5, 100)):
        weft(lab, "link", "down", "node1")
        node1.wait_for_carrier(there=False)
        weft(lab, "link", "up", "node1")
        node1.wait_for_carrier()
        reachable(node1, "10.0.0.2")
    flood.kill()
    reachable(node2, "10.0.0.1")


def renumber(lab):
    """Lets the subnet manager assign other LIDs to all ports, and waits for the end of it."""
    def state():
        fabric = json.loads(weft(lab, "--json", "fabric", "show"))
        return fabric["subnet_manager"]["sweeps"], fabric["switches"][0]["lid"]

    sweeps, old = state()
    weft(lab, "sm", "renumber")
    wait_until("a sweep that changes the LIDs", lambda: state()[0] > sweeps and state()[1] != old, timeout=30)


def manager_changes(lab, node1, node2):
    """Pings continue while the subnet manager is disabled. The guests reach each other after it is enabled, and after all LIDs have changed."""
    weft(lab, "sm", "disable")
    ping(node1, node2, "10.0.0.2", 5, "-i 0.2")
    weft(lab, "sm", "enable")
    weft(lab, "sm", "sweep")
    reachable(node1, "10.0.0.2")
    flood = node2.spawn("ping -f -q -w 600 10.0.0.1")
    for _ in range(lab.rounds(2, 20)):
        renumber(lab)
        reachable(node1, "10.0.0.2")
        reachable(node2, "10.0.0.1")
    flood.kill()


def modules_reload(lab, node1, node2):
    """The modules are removed and inserted while pings run."""
    for _ in range(lab.rounds(3, 100)):
        flood = node1.spawn("ping -f -q -w 600 10.0.0.2")
        back = node2.spawn("ping -f -q -w 600 10.0.0.1")
        node1.run("rmmod weft_ipoib", timeout=60)
        node1.run(f"rmmod {MODULES}", timeout=60)
        flood.kill()
        back.kill()
        load_stack(node1)
        interfaces_up(node1)
        reachable(node1, "10.0.0.2")


def card_leaves(lab, node1, node2):
    """The card is removed while the interface is in use and while a child interface is being deleted."""
    node1.run("ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001 && ip link set ib0.8001 up")
    back = node2.spawn("ping -f -q -w 600 10.0.0.1")
    flood = node1.spawn("ping -f -q -w 600 10.0.0.2")
    card = node1.run("basename $(readlink -f /sys/bus/pci/drivers/weft_mlx4/0*)").out.strip()
    node1.run(f"ip link del ib0.8001 & echo 1 > /sys/bus/pci/devices/{card}/remove; wait", timeout=60)
    assert node1.run("ip -o link").out.count("ib0") == 0
    node1.run("echo 1 > /sys/bus/pci/rescan", timeout=60)
    flood.kill()
    interfaces_up(node1)
    reachable(node1, "10.0.0.2")
    back.kill()


def loss(lab, node1, node2):
    """TCP survives a link that loses one packet in a hundred."""
    weft(lab, "link", "set", "node1", "loss=1%")
    end = iperf3(node2, node1, "10.0.0.2")
    assert end["sum_received"]["bytes"] > 1_000_000, end
    assert end["sum_sent"]["retransmits"] > 0, end
    weft(lab, "link", "set", "node1", "loss=0%")


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=400)
def ip_traffic_resumes_after_link_flaps_sm_outages_and_lid_changes(lab):
    """An interface, a link, the subnet manager and all LIDs change under traffic between two guests with weft's stack."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for check in (down_and_up, link_flaps, manager_changes, loss):
            check(lab, node1, node2)


@test(kernels=(), also=("debug", "stock", "plain"), timeout=400)
def modules_and_cards_can_be_removed_under_traffic(lab):
    """The modules are removed and inserted under pings, and the card is removed while they are loaded."""
    with weft_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for check in (modules_reload, card_leaves):
            check(lab, node1, node2)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=600)
def ip_traffic_with_a_stock_peer_resumes_after_link_flaps_sm_outages_and_driver_reloads(lab):
    """Interfaces survive all of these changes if the peer is on Debian's stack."""
    with mixed_pair(lab) as (node1, node2):
        interfaces_up(node1, node2)
        for check in (down_and_up, link_flaps, manager_changes, loss, modules_reload, card_leaves):
            check(lab, node1, node2)


SM_OFF = PAIR + """[sm]
enabled = false
"""


@test(kernels=(), also=("stock", "plain", "debug"), timeout=400)
def opensm_on_a_stock_peer_brings_ib0_up(lab):
    """In a fabric without weft's subnet manager, OpenSM on the peer with Debian's stack sets up the subnet and its broadcast group."""
    with mixed_pair(lab, SM_OFF) as (node1, node2):
        assert json.loads(weft(lab, "--json", "fabric", "show"))["subnet_manager"] is None
        node2.run("modprobe ib_umad")
        node2.spawn("opensm -f /dev/stdout")
        interfaces_up(node1, node2)
        reachable(node1, "10.0.0.2")
        reachable(node2, "10.0.0.1")
        down_and_up(lab, node1, node2)
