# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Programs that make connections by IP address: those of Debian's rdma-core and perftest as any user has them."""
import contextlib
import re

from lab.fabric import PAIR, Fabric
from lab.testing import test

# Some program has the node open, and is about to listen.
LISTENS = "ls -l /proc/*/fd 2>/dev/null | grep -q infiniband/rdma_cm"
SUITE = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_connectx", "weft_ipoib", "weft_rdma_cm", "weft_ucm")


@contextlib.contextmanager
def pair(lab):
    """Two guests with the suite, each at 10.0.0.N on ib0; the second is without IPv6."""
    fabric = Fabric(lab, PAIR)
    guests = [lab.guest(f"node{number}", vfio_user=[socket], memory="768M", append=append)
              for number, (socket, append) in enumerate(zip(fabric.sockets, ("", "ipv6.disable=1")), 1)]
    with lab.boot(*guests) as nodes:
        for number, node in enumerate(nodes, 1):
            node.insmod(*(f"/share/{name}.ko" for name in SUITE))
            node.run(f"ip link set ib0 up && ip addr add 10.0.0.{number}/24 dev ib0")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        nodes[0].wait_for("ping -c 1 -W 1 -q 10.0.0.2", timeout=60, what="an answer of node2")
        yield nodes
        for node in nodes:
            node.run("rmmod " + " ".join(reversed(SUITE)))
            node.run("! ls -d /dev/infiniband/rdma_cm /sys/class/misc/rdma_cm")


@test(kernels=("stock",), also=("plain", "debug"), timeout=240)
def stock_programs(lab):
    """rping, ucmatose, udaddy and perftest with -R connect two guests, data compared, and leave nothing behind."""
    with pair(lab) as (node1, node2):
        assert node1.run("stat -c %a /dev/infiniband/rdma_cm; cat /sys/class/misc/rdma_cm/abi_version").out == "666\n4\n"
        # Nobody has an address where there is no IPv6.
        refused = node2.run("ucmatose -f ip -b 2001:db8::1 2>&1 || true").out
        assert "Cannot assign requested address" in refused, refused
        listening = node1.spawn("rping -s -v -C 20 -a 10.0.0.1")
        node1.wait_for(LISTENS, timeout=20, what="rping to listen")
        out = node2.run("rping -c -v -C 20 -a 10.0.0.1", timeout=60).out
        assert len(re.findall("^ping data: rdma-ping", out, re.MULTILINE)) == 20, out
        listening.wait(60)
        for command in ("ucmatose -c 10", "ucmatose -c 10 -m", "udaddy -c 10"):
            listening = node1.spawn(command)
            node1.wait_for(LISTENS, timeout=20, what=f"{command} to listen")
            assert "return status 0" in node2.run(f"{command} -s 10.0.0.1", timeout=60).out, command
            assert "return status 0" in listening.wait(60).out, command
        listening = node1.spawn("ib_send_bw -R -F -n 100")
        node1.wait_for(LISTENS, timeout=20, what="ib_send_bw to listen")
        out = node2.run("ib_send_bw -R -F -n 100 10.0.0.1", timeout=60).out
        assert re.search(r"^\s*\d+\s+\d+\s+\d+\.\d+", out, re.MULTILINE), out
        listening.wait(60)
        # By GIDs, which librdmacm tries only where it has found at its start that the kernel knows such addresses.
        gids = [node.run("cat /sys/class/infiniband/*/ports/1/gids/0").out.strip() for node in (node1, node2)]
        listening = node1.spawn(f"ucmatose -c 10 -f gid -b {gids[0]}")
        node1.wait_for(LISTENS, timeout=20, what="ucmatose to listen at its GID")
        out = node2.run(f"ucmatose -c 10 -f gid -b {gids[1]} -s {gids[0]}", timeout=60).out
        assert "return status 0" in out and "return status 0" in listening.wait(60).out, out
