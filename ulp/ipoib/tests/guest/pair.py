# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides two guests on one fabric, with one card each: the setup that tests of IP over InfiniBand share."""
import contextlib
import json
import subprocess

from lab.fabric import PAIR, Fabric
from lab.waiting import DeadlineExceeded

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_mlx4", "weft_ipoib")


def start_fabric(lab, lab_file=PAIR, **kernel_of):
    """Starts a fabric with node1 and node2; returns the cards' sockets. kernel_of: see Fabric."""
    return Fabric(lab, lab_file, kernel_of=kernel_of).sockets


def weft(lab, *arguments):
    """Runs the program weft on the test's fabric."""
    return subprocess.run([lab.program("weft"), "--socket-dir", lab.socket_path("x").parent, *map(str, arguments)],
                          check=True, capture_output=True, text=True, timeout=60).stdout


def load_stack(node, driver="weft_mlx4"):
    node.insmod(*(f"/share/{driver if name == 'weft_mlx4' else name}.ko" for name in STACK))


def load_stock(node, driver="mlx4_ib"):
    """Loads Debian's in-tree modules."""
    node.run(f"modprobe {driver} && modprobe ib_ipoib", timeout=60)
    node.wait_for("ip link show dev ib0", timeout=60, what="ib0 of the stock stack")


def unload_stack(node, driver="weft_mlx4"):
    node.run(f"rmmod weft_ipoib {driver} weft_cm weft_mad weft_core weft_kern", timeout=60)


@contextlib.contextmanager
def weft_pair(lab, lab_file=PAIR, **options):
    """Yields two guests with weft's modules loaded, and unloads them at the end unless the test fails."""
    sockets = start_fabric(lab, lab_file)
    guests = [lab.guest(f"node{number}", cards=[socket], **options) for number, socket in enumerate(sockets, 1)]
    with lab.boot(*guests) as nodes:
        for node in nodes:
            load_stack(node)
        yield nodes
        for node in nodes:
            unload_stack(node)


@contextlib.contextmanager
def mixed_pair(lab, lab_file=PAIR, peer_share=None):
    """Yields one guest with weft's stack and one with Debian's kernel and its in-tree modules, which has peer_share as its /share."""
    sockets = start_fabric(lab, lab_file, node2="stock")
    ours = lab.guest("node1", cards=[sockets[0]])
    theirs = lab.guest("node2", cards=[sockets[1]], kernel="stock", share=peer_share)
    with lab.boot(ours, theirs) as (node1, node2):
        load_stack(node1)
        load_stock(node2)
        yield node1, node2
        unload_stack(node1)


def reachable(source, target, timeout=60):
    source.wait_for(f"ping -c 1 -W 1 -q {target}", timeout=timeout, what=f"an answer of {target} to {source.name}")


def lost_sizes(source, target, sizes, options=""):
    """Returns the sizes without an answer. Each gets its own ping, because ping waits for a last packet only twice as long as the others took."""
    words = " ".join(map(str, sizes))
    return source.run(f"for size in {words}; do ping -c 1 -W 5 -q -s $size {options} {target} >/dev/null || echo $size; done", timeout=60 + 5 * len(sizes)).out.split()


def interfaces_up(*nodes, dev="ib0", network="10.0.0"):
    """Sets ib0 up with an address on each node, and waits until it has a carrier: its port is active and it has joined the broadcast group."""
    for number, node in enumerate(nodes, 1):
        node.run(f"ip link set {dev} up && ip addr add {network}.{number}/24 dev {dev}")
    for node in nodes:
        node.wait_for_carrier(dev)


def iperf3(server, client, address, options="", amount="-n 8M", timeout=60):
    """Returns the final report of iperf3; amount: bytes of a stream (-n), or seconds (-t), in which a slow guest sends what it can; timeout: of the client."""
    listener = server.spawn("iperf3 -s -1")
    server.wait_for("ss -ltn | grep -q :5201", timeout=20, what="iperf3 to listen")
    report = client.run(f"iperf3 -J -c {address} {amount} {options}", timeout=timeout)
    try:
        listener.wait(60)
    except DeadlineExceeded as error:
        # Report which side waits, and whether any packets arrive.
        seen = (f"{node.name}:\n{node.run(f'ss -tanoim; ip -s link show ib0; ip neigh', check=False).out}" for node in (server, client))
        raise DeadlineExceeded("\n".join((str(error), *seen))) from None
    return json.loads(report.out)["end"]
