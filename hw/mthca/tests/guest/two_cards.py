# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests an InfiniHost and a ConnectX on one fabric, each with weft's driver."""
import contextlib
import pathlib
import sys

MLX4 = pathlib.Path(__file__).resolve().parents[3] / "mlx4/tests"
sys.path[:0] = [str(MLX4 / "support"), str(MLX4 / "guest")]

from lab.testing import test

import faults
import verbs
from traffic import FaultyFabric, Node

# Two hosts on one switch, with different cards.
MIXED = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
model = "mthca"
ports = 2
[[host]]
name = "node2"
[[link]]
ends = ["node1/1", "switch1"]
[[link]]
ends = ["node2", "switch1"]
"""
BELOW = ("weft_kern", "weft_core", "weft_mad", "weft_cm")
DRIVERS = ("weft_mthca", "weft_mlx4")


def load(node, driver):
    node.insmod(*(f"/share/{name}.ko" for name in (*BELOW, driver, "weft_ipoib")))


def unload(node, driver):
    node.run(["rmmod", "weft_ipoib", driver, *reversed(BELOW)], timeout=60)


@contextlib.contextmanager
def two_cards(lab, **options):
    """Yields the two guests, without modules loaded, and the fabric."""
    fabric = FaultyFabric(lab, MIXED)
    with lab.boot(*(lab.guest(f"node{number}", cards=[socket], **options) for number, socket in enumerate(fabric.sockets, 1))) as guests:
        yield guests, fabric


def bring_up(nodes):
    for number, node in enumerate(nodes, 1):
        node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0")
    for node in nodes:
        node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")


def ping(source, target, *sizes):
    for size in sizes:
        for _ in range(3):
            source.run(f"ping -q -c 1 -W 5 -s {size} {target}")


@test(kernels=("um-debug",), also=("stock", "debug", "plain", "um"), timeout=240)
def mlx4_and_mthca_ping_each_other(lab):
    """ib0 comes up on both cards, and they ping each other, also with fragmented packets, and again after the driver of the first one has been
    reloaded."""
    with two_cards(lab) as (nodes, _):
        for node, driver in zip(nodes, DRIVERS, strict=True):
            load(node, driver)
        bring_up(nodes)
        ping(nodes[0], "10.0.0.2", 0, 56, 2016, 2017, 40000)
        ping(nodes[1], "10.0.0.1", 0, 56, 2016, 2017, 40000)
        # Use the interrupt pin then, where the guest has one.
        pin = "" if lab.kernel.startswith("um") else "completion_vectors=0"
        nodes[0].run(f"rmmod weft_mthca && ! ip link show dev ib0 2>/dev/null && insmod /share/weft_mthca.ko {pin}", timeout=60)
        bring_up(nodes[:1])
        ping(nodes[0], "10.0.0.2", 56)
        for node, driver in zip(nodes, DRIVERS, strict=True):
            unload(node, driver)
        assert nodes[0].find_leaks() == ""


def check_messages(one_node, two_node):
    for options, sizes in (({"type": "rc"}, (1, 64, 4096, 60000)), ({"type": "uc"}, (1, 4096)), ({"type": "ud"}, (1, 2048)),
                           ({"type": "rc", "srq": 1}, (100, 5000)), ({"type": "ud", "srq": 1}, (100,))):
        one, two = one_node.open(**options), two_node.open(**options)
        one.join(two)
        for size in sizes:
            count = min(32, 65536 // (size + 40))
            verbs.exchange(one, two, count, size)
            verbs.exchange(two, one, count, size, op="send_imm", batch=min(4, count), pieces=3)
            if size <= 128:
                verbs.exchange(one, two, count, size, inline=1, pieces=2)
        one.close()
        two.close()


def check_memory(one_node, two_node):
    """The first node accesses the second's memory with all operations that both cards have."""
    one, two = one_node.open(type="rc"), two_node.open(type="rc")
    one.join(two)
    assert one.send(op="write", count=4, size=16384, seed=3, **two.memory)["done"] == "4"
    assert two.verify(count=4, size=16384, seed=3)["good"] == "4"
    assert one.send(op="read", count=4, size=16384, **two.memory)["done"] == "4"
    assert one.verify(count=4, size=16384, seed=3)["good"] == "4"
    two.word(index=0, set="yes", value=100)
    assert one.send(op="add", size=8, compare_add=23, **two.memory)["done"] == "1"
    assert (two.word()["word"], one.word()["word"]) == (hex(123), hex(100))
    assert one.send(op="cas", size=8, compare_add=123, swap=9, **two.memory)["done"] == "1"
    assert (two.word()["word"], one.word()["word"]) == (hex(9), hex(123))


def check_drain(node, peer):
    """MGMT-09: draining or destroying a queue completes all its requests in order."""
    for how, count in (("drain", 30), ("destroy", 30), ("destroy", 200), ("poll", 200)):
        silent = peer.open(type="rc")
        address = "".join(f" {name}={value}" for name, value in silent.address.items())
        drained = node.command(f"drain how={how} count={count} type=rc{address}")
        assert (drained["sends"], drained["receives"], drained["disorder"]) == (str(count), str(count), "0"), (how, drained[""])
        silent.close()


@test(kernels=("um-debug",), also=("stock", "debug", "plain", "um"), timeout=300)
def messages_rdma_and_atomics_complete_between_mlx4_and_mthca(lab):
    """Messages, RDMA and atomics work in both directions, with every byte checked. Failures are reported and other requests flushed. Queues keep
    their contents while they are resized. Each event of the InfiniHost's queues reaches its consumer. The InfiniHost recovers from a failure and a
    reset."""
    with two_cards(lab) as (guests, fabric):
        nodes = [Node(guest) for guest in guests]
        for node, driver in zip(nodes, DRIVERS, strict=True):
            node.load("weft_kern", "weft_core", driver, "weft_traffic")
        for node in nodes:
            node.wait_active()
        check_messages(*nodes)
        for one, two in (nodes, reversed(nodes)):
            check_memory(one, two)
        check_drain(*nodes)
        verbs.check_errors(lab, *nodes)
        verbs.check_resize(*reversed(nodes))
        verbs.check_events(lab, *reversed(nodes), fabric)
        faults.check_breakdown(*nodes, fabric)
        nodes[0].guest.run(["rmmod", "weft_traffic", DRIVERS[0], "weft_core", "weft_kern"])
        assert nodes[0].guest.find_leaks() == ""


def check_sharing(node, count):
    """LOCK-01, LOCK-04: tasks, and a hard interrupt, post on one queue pair and poll and arm its one queue; each request completes once."""
    lid = node.open(type="rc").address["lid"]
    shared = node.command(f"share tasks=2 interrupt=1 count={count} lid={lid}")
    assert (shared["completed"], shared["wrong"]) == (str(3 * 2 * count), "0"), shared[""]


@test(kernels=("debug",), also=("stock", "plain", "um-debug"), timeout=240)
def two_cpus_and_an_interrupt_share_a_qp_without_losing_requests(lab):
    """On both cards, two CPUs and a hard interrupt use the same queue pair and completion queue at the same time. No request is lost or completes
    twice."""
    with two_cards(lab, **({} if lab.kernel.startswith("um") else {"cpus": 2})) as (guests, _):
        nodes = [Node(guest) for guest in guests]
        for node, driver in zip(nodes, DRIVERS, strict=True):
            node.load("weft_kern", "weft_core", driver, "weft_traffic")
        for node in nodes:
            node.wait_active()
        for node in nodes:
            check_sharing(node, lab.rounds(2000, 100_000))


@test(kernels=(), also=("um-debug", "stock", "debug", "plain"), timeout=500)
def mthca_driver_recovers_from_injected_card_faults(lab):
    """Each command of the InfiniHost's start fails once, and then random faults occur under traffic with a ConnectX. In a QEMU guest, each fault of a
    completion, an event and a command, and inconsistent query results, are also injected one by one. weft's driver reports or tolerates them, and
    recovers."""
    with two_cards(lab) as (guests, fabric):
        nodes = [Node(guest) for guest in guests]
        for node, driver in zip(nodes, DRIVERS, strict=True):
            node.load("weft_kern", "weft_core", driver, "weft_traffic")
        for node in nodes:
            node.wait_active()
        if not lab.kernel.startswith("um"):
            faults.check_completions_and_events(*nodes, fabric)
            faults.check_commands(*nodes, fabric)
            faults.check_interrupts(*nodes, fabric)
            for _ in range(lab.rounds(12, 100)):
                fabric.fault("node1", "capabilities")
                faults.rebind(nodes[0].guest, check=False)
            faults.heal(nodes[0], fabric)
        faults.check_start(lab, nodes[0], fabric)
        faults.check_random(lab, *nodes, fabric)
        nodes[0].guest.run(["rmmod", "weft_traffic", DRIVERS[0], "weft_core", "weft_kern"])
        assert nodes[0].guest.find_leaks() == ""
