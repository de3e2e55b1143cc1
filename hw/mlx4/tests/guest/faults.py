# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the driver on cards that are broken on purpose: it reports the fault once and fails the operation, or restarts the device. The peer of a
broken card is in a guest with weft's modules or with Debian's in-tree stack; probe_succeeds_after_a_probe_with_inconsistent_capabilities and
probe_refuses_a_card_whose_bars_are_too_small have no peer."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from lab.fabric import Fabric
from lab.testing import test
from traffic import Node, Refused, pair


def log_lines(guest):
    return guest.sync_log().count("\n")


def rebind(guest, check=True):
    """Probes the card again with the only driver of weft that is loaded. The probe of a broken card may fail."""
    driver = guest.run("echo /sys/bus/pci/drivers/weft_*").out.strip()
    guest.run(f"[ ! -e {guest.card}/driver ] || echo {guest.card.name} > {driver}/unbind", timeout=90)
    guest.run(f"echo {guest.card.name} > {driver}/bind", timeout=120, check=check)


def heal(node1, fabric):
    """Probes the card again after its faults, and waits for its port to be active."""
    rebind(node1.guest)
    node1.wait_active(60)


def check_flow(node1, node2):
    one, two = node1.open(type="rc"), node2.open(type="rc")
    try:
        one.join(two)
        two.post(count=8, size=1000)
        assert one.send(count=8, size=1000, seed=5)["done"] == "8"
        assert two.receive(count=8, size=1000, seed=5)["good"] == "8"
        one.close()
    finally:
        two.close()


def provoke(node1, node2, kind, fabric):
    """Sends messages into the fault. They may fail, but the command must return."""
    one, two = node1.open(type="rc"), node2.open(type="rc")
    one.join(two)
    two.post(count=8, size=100)
    fabric.fault("node1", kind)
    try:
        one.send(count=8, size=100, ms=3000)
    except Refused as refused:
        assert "timed out" in str(refused).lower() or "error" in str(refused).lower(), refused
    two.close()
    one.close()


def check_completions_and_events(node1, node2, fabric):
    for kind in ("cqe-number", "cqe-index", "cqe-opcode", "cqe-owner", "eqe-number", "eqe-type", "eqe-owner"):
        lines = log_lines(node1.guest)
        provoke(node1, node2, kind, fabric)
        assert fabric.struck("node1")[kind] > 0, kind
        assert log_lines(node1.guest) - lines < 40, kind
        heal(node1, fabric)
        check_flow(node1, node2)


def check_commands(node1, node2, fabric):
    for kind in ("command-twice", "command-status", "command-lost"):
        fabric.fault("node1", kind)
        try:
            node1.open(type="rc").close()
        except Refused:
            assert kind != "command-twice"
        assert fabric.struck("node1")[kind] > 0, kind
        heal(node1, fabric)
        check_flow(node1, node2)


def check_interrupts(node1, node2, fabric):
    fabric.fault("node1", "interrupt", count=200)
    check_flow(node1, node2)


def check_breakdown(node1, node2, fabric):
    check_flow(node1, node2)
    starts = "dmesg | grep -c 'started in'"
    before = int(node1.guest.run(starts).out)
    fabric.fault("node1", "catastrophic")
    node1.guest.wait_for(f"test $({starts}) -gt {before}", timeout=60, what="the card's new start")
    node1.wait_active(60)
    check_flow(node1, node2)


@test(kernels=("stock",), also=("plain", "debug"), timeout=500)
def driver_reports_invalid_completions_and_events_and_continues(lab):
    """Completions and events with invalid numbers, types and owners are survived and reported in a few lines."""
    with pair(lab) as nodes:
        check_completions_and_events(*nodes)


@test(kernels=("stock",), also=("plain", "debug"), timeout=500)
def driver_survives_card_commands_that_never_complete_or_complete_twice_or_fail(lab):
    """A command that never completes, completes twice, or returns an unknown status is survived."""
    with pair(lab) as nodes:
        check_commands(*nodes)


@test(kernels=("stock",), also=("plain", "debug"), timeout=500)
def spurious_interrupts_are_ignored(lab):
    """Traffic continues during 200 spurious interrupts."""
    with pair(lab) as nodes:
        check_interrupts(*nodes)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=500)
def driver_resets_the_card_after_a_catastrophic_error(lab):
    """The driver detects a catastrophic error and resets the card: the device is removed and registered again."""
    with pair(lab) as nodes:
        check_breakdown(*nodes)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=900)
def driver_survives_injected_card_faults_when_the_peer_runs_the_debian_rdma_stack(lab):
    """The driver survives all of these faults if the peer is on Debian's stack."""
    with pair(lab, stock_peer=True) as nodes:
        check_completions_and_events(*nodes)
        check_commands(*nodes)
        check_interrupts(*nodes)
        check_breakdown(*nodes)


@test(kernels=("stock",), also=("plain", "debug"), timeout=500)
def probe_succeeds_after_a_probe_with_inconsistent_capabilities(lab):
    """If a query returns inconsistent results, the probe fails with a reason or succeeds. The next probe, of a correct card, succeeds."""
    with pair(lab) as (node1, _, fabric):
        for _ in range(lab.rounds(12, 100)):
            fabric.fault("node1", "capabilities")
            rebind(node1.guest, check=False)
        heal(node1, fabric)


SMALL = """
[[host]]
name = "node1"
small_bars = true
[[host]]
name = "node2"
[[link]]
ends = ["node1", "node2"]
[sm]
enabled = false
"""


@test(kernels=("stock",), also=("plain", "debug"), timeout=200)
def probe_refuses_a_card_whose_bars_are_too_small(lab):
    """The probe refuses a card whose BARs are too small for its registers."""
    with lab.guest("node1", cards=Fabric(lab, SMALL).sockets[:1]) as guest:
        node = Node(guest)
        node.load()
        assert guest.run(f"[ -e {guest.card}/driver ]", check=False).status != 0
        assert "too small" in guest.run("dmesg | grep -i weft_mlx4").out
        node.unload()


def check_start(lab, node1, fabric):
    """Lets the commands of the driver's start fail, one per start (without --full only some of them). The probe may fail or succeed, but the next
    start must reach the next command."""
    stride = lab.rounds(20, 1)
    nth = 1 + lab.seed % stride
    while True:
        node1.guest.run(f"[ ! -e {node1.guest.card}/driver ] || echo {node1.guest.card.name} > {node1.guest.card}/driver/unbind", timeout=90)
        before = fabric.struck("node1")["command-nth"]
        fabric.fault("node1", "command-nth", count=nth)
        rebind(node1.guest, check=False)
        if fabric.struck("node1")["command-nth"] == before:
            break
        nth += stride
    # The start has 58 commands on one CPU, and more on several. The loop ends after the last of them, whatever the seed.
    assert nth > 58, nth
    fabric.fault("node1", "command-nth", count=0)
    heal(node1, fabric)


def check_random(lab, node1, node2, fabric):
    fabric.random_faults("node1", lab.seed, 50)
    end = time.monotonic() + lab.rounds(20, 600)
    # With some seeds, no fault occurs for a long time.
    while time.monotonic() < end or not sum(fabric.struck("node1").values()):
        try:
            check_flow(node1, node2)
        except (Refused, AssertionError):
            rebind(node1.guest, check=False)
    fabric.random_faults("node1", lab.seed, 0)
    heal(node1, fabric)
    check_flow(node1, node2)


@test(kernels=("um-debug",), also=("debug", "stock", "plain"), timeout=300)
def driver_survives_random_card_faults(lab):
    """Each command of the driver's start fails once. Then random faults occur for some time under traffic, and the driver is bound again when
    necessary."""
    with pair(lab) as nodes:
        check_start(lab, nodes[0], nodes[-1])
        check_random(lab, *nodes)
        nodes[0].unload()
        assert nodes[0].guest.find_leaks() == ""


@test(kernels=(), also=("stock", "plain", "debug"), timeout=300)
def driver_survives_random_card_faults_when_the_peer_runs_the_debian_rdma_stack(lab):
    """The driver survives random faults under traffic to a peer on Debian's stack."""
    with pair(lab, stock_peer=True) as nodes:
        check_random(lab, *nodes)
