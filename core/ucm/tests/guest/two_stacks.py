# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Stock programs that connect by IP address, each at one end on the suite and at the other on Debian's own stack, and the other way round."""
import contextlib
import re

from lab.fabric import PAIR, Fabric
from lab.testing import full, test

from connecting import ALL, LISTENS, MEASURED, hear
from connections import SUITE

DEBIANS = ("mlx4_ib", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_ucm")


@contextlib.contextmanager
def guests(lab):
    """A fabric with two guests at 10.0.0.N and fd00::N on ib0: node1 on our stack, node2 on Debian's."""
    fabric = Fabric(lab, PAIR)
    machines = [lab.guest(f"node{number}", vfio_user=[socket]) for number, socket in enumerate(fabric.sockets, 1)]
    with lab.boot(*machines) as nodes:
        for number, (node, own) in enumerate(zip(nodes, (True, False)), 1):
            if own:
                node.insmod(*(f"/share/{name}.ko" for name in SUITE))
            else:
                node.run(f"modprobe mlx4_core && modprobe -a {' '.join(DEBIANS)}", timeout=60)
            node.wait_for("test -e /sys/class/net/ib0", timeout=20, what="ib0")
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0 && ip addr add fd00::{number}/64 dev ib0 nodad")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[1].wait_for("ping -c 1 -W 1 -q 10.0.0.1 && ping -c 1 -W 1 -q fd00::1", timeout=60, what="answers of node1")
        yield fabric, nodes


@test(kernels=(), also=("stock", "plain"), timeout=600)
def programs_between_two_stacks(lab):
    """Programs on the suite and on Debian's stack connect to each other by IPv4 and IPv6, either of them as the server."""
    with guests(lab) as (_fabric, nodes):
        hear(nodes, ALL)


def bandwidth(server, client, address, meanwhile, count):
    """ib_send_bw -R through what a link does meanwhile."""
    command = f"ib_send_bw -R -F -s 65536 -n {count}"
    serving = server.spawn(command)
    server.wait_for(LISTENS, timeout=20, what=f"`{command}` to listen")
    # What it says comes at once, not with its end.
    asking = client.spawn(f"stdbuf -oL {command} {address}")
    meanwhile(asking)
    # Who loses a packet that was asked for again, or the one that asks, waits for the acknowledgement's time-out, two seconds by the RDMA CM's numbers.
    asking.wait(480)
    serving.wait(60)
    assert re.search(MEASURED, asking.out, re.MULTILINE), asking.out


@test(kernels=(), also=("stock", "plain"), timeout=2400)
def bandwidth_over_bad_links(lab):
    """ib_send_bw -R between the suite and Debian's stack, either as the server, comes to its end while a link loses 1 %, reorders, and goes down and up."""
    with guests(lab) as (fabric, nodes):
        def flap(asking):
            asking.wait_output("local address", 60)
            for _ in range(3):
                assert asking.status is None, "the transfer was over before the link went down"
                fabric.weft("link", "down", "node1")
                fabric.weft("link", "up", "node1")

        for number, (server, client) in enumerate((nodes, nodes[::-1]), 1):
            address = f"10.0.0.{number}"
            for settings in (("loss=1%",), ("reordering=5%", "jitter=20us"), ("loss=1%", "reordering=5%", "jitter=20us")):
                fabric.weft("link", "set", "node1", *settings)
                bandwidth(server, client, address, lambda asking: None, 2000 if full() else 500)
                fabric.weft("link", "set", "node1", "loss=0", "reordering=0", "jitter=0us")
            bandwidth(server, client, address, flap, 20000)
