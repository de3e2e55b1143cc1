# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the InfiniHost with Debian's drivers and programs, connected to a ConnectX-2. Neither guest runs code of weft."""
import re

from lab.testing import test

from stock import KILLED, check, complaints, guests, ping, served
from stock import interfaces_up as ipoib_up

# node1's second port has no link.
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
CLIENTS = "ib_uverbs ib_umad ib_ipoib"
EXCHANGES = 500


def active(node, device):
    node.wait_for(f"grep -q ACTIVE /sys/class/infiniband/{device}/ports/1/state", timeout=60, what=f"an active port of {device}")


def sent(node):
    """Returns the number of packets that the port of the first card has sent, from perfquery."""
    return int(re.search(r"PortXmitPkts:\.*(\d+)", node.run("perfquery -x").out)[1])


def load(node1, node2):
    node1.run(f"modprobe ib_mthca && modprobe -a {CLIENTS}", timeout=60)
    node2.run(f"modprobe mlx4_core && modprobe -a mlx4_ib {CLIENTS}", timeout=60)
    active(node1, "mthca0")
    active(node2, "mlx4_0")


@test(kernels=("stock",), timeout=180)
def stock_ib_mthca_interoperates_with_a_connectx(lab):
    """ib_mthca probes the card without a warning, and IPoIB and every kind of queue pair work with a ConnectX. It reloads, and it resets a failed
    card."""
    with guests(lab, MIXED) as (fabric, (node1, node2)):
        node1.run("dmesg -C")
        load(node1, node2)
        with check("the driver logs no warning"):
            assert complaints(node1) == "", complaints(node1)
        with check("ibv_devinfo shows the attributes of the card"):
            said = node1.run("ibv_devinfo -v -d mthca0").out
            for what in ("vendor_part_id:\t\t\t25218", "phys_port_cnt:\t\t\t2", "active_mtu:\t\t2048", "fw_ver:\t\t\t\t5.3.0", "max_srq_wr:\t\t\t16384"):
                assert what in said, said
        ipoib_up(node1, node2)
        with check("pings pass in both directions, also with fragments"):
            ping(node1, node2, "10.0.0.2", 200)
            ping(node2, node1, "10.0.0.1", 200)
            ping(node1, node2, "10.0.0.2", 20, "-f -s 5000")
        for transport in ("rc", "uc", "ud", "srq"):
            size = "-m 2048 -s 4096" if transport != "ud" else "-s 1024"
            for events in ("", "-e"):
                with check(f"ibv_{transport}_pingpong {events} passes between the two cards"):
                    for out in served(node1, node2, f"ibv_{transport}_pingpong -c {events} -n {EXCHANGES} {size}"):
                        assert f"{EXCHANGES} iters in" in out and "invalid data" not in out, out
        with check("infiniband-diags finds the fabric, and perfquery counts the card's packets"):
            seen = node1.run("ibnetdiscover").out
            assert '"node2' in seen and '"switch1' in seen, seen
            assert "SMINFO_MASTER" in node1.run("sminfo").out
            assert node1.run("iblinkinfo --switches-only | grep -c Active").out.strip() == "3"
            assert node1.run("saquery NR").out.count("NodeRecord dump") >= 3
            before = sent(node1)
            ping(node1, node2, "10.0.0.2", 50)
            assert sent(node1) - before >= 50
            node1.run("perfquery -x -R")
            assert sent(node1) < before
        with check("programs that are killed leave nothing behind"):
            assert node1.run("timeout -s KILL 1 ibv_rc_pingpong -d mthca0", check=False).status == KILLED
            for out in served(node1, node2, "ibv_rc_pingpong -c -n 100"):
                assert "100 iters in" in out, out
        with check("the driver resets a card with a catastrophic error, and the port becomes active again"):
            fabric.weft("card", "fault", "node1", "catastrophic")
            node1.wait_for("dmesg | grep -q 'Catastrophic error detected'", timeout=30, what="the driver to see the fault")
            node1.wait_for("! test -e /sys/class/infiniband/mthca0 || grep -q ACTIVE /sys/class/infiniband/mthca0/ports/1/state", timeout=60,
                           what="the driver's reset")
            active(node1, "mthca0")
        with check("the driver unloads, and loads again"):
            node1.run("modprobe -r ib_ipoib ib_umad ib_uverbs; modprobe -r ib_mthca", timeout=60)
            node1.run(f"modprobe ib_mthca && modprobe -a {CLIENTS}", timeout=60)
            active(node1, "mthca0")


@test(kernels=(), also=("stock",), timeout=240)
def perftest_completes_between_an_infinihost_and_a_connectx(lab):
    """perftest's operations over RC, UC and UD complete in both directions between an InfiniHost and a ConnectX."""
    with guests(lab, MIXED) as (_, (node1, node2)):
        load(node1, node2)
        ipoib_up(node1, node2)
        for server, client, address in ((node1, node2, "10.0.0.1"), (node2, node1, "10.0.0.2")):
            for operation, transports in (("send", "RC UC UD"), ("write", "RC UC"), ("read", "RC"), ("atomic", "RC")):
                for transport in transports.split():
                    for kind in ("bw", "lat"):
                        length = "" if operation == "atomic" else "-s 1024"
                        mtu = "" if transport == "UD" else "-m 2048"
                        with check(f"ib_{operation}_{kind} over {transport} completes"):
                            served(server, client, f"ib_{operation}_{kind} -F -c {transport} -n 300 {length} {mtu}", address=address)
