# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the interoperability of weft's driver for the InfiniHost with Debian's driver for the same card and for a ConnectX, and with independent programs."""
import contextlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
MLX4 = ROOT / "hw/mlx4/tests"
sys.path[:0] = [str(ROOT / "tools/tests/guest"), str(MLX4 / "support"), str(MLX4 / "guest")]

from lab.fabric import Fabric
from lab.testing import full, test

import verbs
from opensm import OPENSM
from stock import KILLED, check, interfaces_up, ping, served
from traffic import FaultyFabric, StockNode

# weft's driver, Debian's ib_mthca and Debian's mlx4 driver.
THREE = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
model = "mthca"
ports = 2
[[host]]
name = "node2"
model = "mthca"
ports = 2
[[host]]
name = "node3"
[[link]]
ends = ["node1/1", "switch1"]
[[link]]
ends = ["node2/1", "switch1"]
[[link]]
ends = ["node3", "switch1"]
"""
# On an untrusted host the driver gets no SMPs, so it reads its LID from the card.
STRANGE = THREE.replace('model = "mthca"\n', 'model = "mthca"\ntrusted = false\n')
STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_mthca", "weft_ipoib")
PROBE = "/tmp/weft-uverbs-probe"
DEBIANS = {2: "ib_mthca", 3: "mlx4_ib"}
PING_PONGS = tuple(f"ibv_{transport}_pingpong -c {events} {size}" for transport, size in
                   (("rc", "-m 2048 -s 5000"), ("uc", "-m 2048 -s 5000"), ("ud", "-s 1024"), ("srq", "-m 2048 -s 3000")) for events in ("", "-e"))
FEW_FIGURES = ("ib_send_lat -c RC -e -m 2048", "ib_send_bw -c UD -s 1024", "ib_write_bw -c UC -m 2048", "ib_read_bw -c RC -m 2048", "ib_atomic_lat -c RC -m 2048")
ALL_FIGURES = tuple(f"ib_{operation}_{kind} -c {transport}{'' if operation == 'atomic' else ' -s 1024'}{'' if transport == 'UD' else ' -m 2048'}{events}"
                    for operation, transports in (("send", "RC UC UD"), ("write", "RC UC"), ("read", "RC"), ("atomic", "RC"))
                    for transport in transports.split() for kind in ("bw", "lat") for events in ("", *(() if operation == "write" else (" -e",))))


@contextlib.contextmanager
def three(lab, lab_file=THREE):
    """The fabric and its guests, at 10.0.0.N on ib0."""
    fabric = FaultyFabric(lab, lab_file)
    described = [lab.guest(f"node{number}", vfio_user=[socket], memory="768M") for number, socket in enumerate(fabric.sockets, 1)]
    with lab.boot(*described) as nodes:
        nodes[0].insmod(*(f"/share/{name}.ko" for name in STACK))
        for number, driver in DEBIANS.items():
            nodes[number - 1].run(f"modprobe {driver} && modprobe -a ib_uverbs ib_umad ib_ipoib", timeout=60)
        interfaces_up(*nodes)
        yield fabric, nodes


def exchange(one, other, commands, says):
    """Runs each command between the two guests, which alternate as the server, and checks the output."""
    ends = ((one, other), (other, one))
    for number, command in enumerate(commands):
        server, client = ends[number % 2]
        with check(f"`{command}` passes between {server.name} and {client.name}"):
            for out in served(server, client, command, address=f"10.0.0.{server.name[-1]}"):
                assert re.search(says, out, re.MULTILINE) and "invalid data" not in out, out


@test(kernels=("stock",), also=("plain",), timeout=400)
def weft_mthca_driver_exchanges_traffic_with_stock_mthca_and_mlx4_drivers(lab):
    """IP, the ping-pong programs of all transports (polling and with events) and perftest work between weft's driver and Debian's drivers for both
    cards, on hosts that are not trusted with subnet management. Each event of a queue reaches its program on both stacks."""
    with three(lab, STRANGE) as (fabric, nodes):
        ours, *others = nodes
        with check("ibv_devinfo shows the attributes of the card"):
            said = ours.run("ibv_devinfo -v -d mthca0").out
            for what in (r"vendor_part_id:\s+25218", r"phys_port_cnt:\s+2", r"active_mtu:\s+2048", r"fw_ver:\s+5\.3\.0", r"GID\[\s*0\]:\s+fe80:"):
                assert re.search(what, said), f"{what} is not in:\n{said}"
        for number, outsider in enumerate(others, 2):
            ping(ours, outsider, f"10.0.0.{number}", 100, "-f -s 5000")
            ping(outsider, ours, "10.0.0.1", 100)
            exchange(ours, outsider, [f"{command} -n 200" for command in PING_PONGS], "200 iters in")
            exchange(ours, outsider, [f"{command} -F -n 100" for command in (ALL_FIGURES if full() else FEW_FIGURES)], r"^\s*\d+\s+\d+\s+\d+\.\d+|^---")
        with check("a program that is killed leaves nothing behind"):
            assert ours.run("timeout -s KILL 1 ibv_rc_pingpong -d mthca0", check=False).status == KILLED
            exchange(ours, others[0], ["ibv_rc_pingpong -c -m 2048 -n 100"], "100 iters in")
        with check("limits hold, random commands do no harm, and a killed program leaves nothing behind"):
            ours.put(PROBE, lab.program("weft-uverbs-probe").read_bytes())
            ours.run(f"chmod +x {PROBE} && {PROBE} bounds", timeout=60)
            ours.run(f"{PROBE} random {lab.seed} {lab.rounds(2000, 20000)}", timeout=60)
            ours.run(f"{PROBE} deaths {lab.seed} 1", timeout=60)
            exchange(ours, others[0], ["ibv_rc_pingpong -c -m 2048 -n 100"], "100 iters in")
        programs = [StockNode(node, lab.program("weft-traffic")) for node in nodes]
        for program in programs:
            program.serve()
        # Debian's ib_mthca has no case for an SRQ's failure: "Unhandled event 12".
        for owner, srq_error in ((programs[0], "SRQ error"), (programs[1], None)):
            with check(f"events of queues on {owner.guest.name} reach the program that owns them"):
                verbs.check_events(lab, programs[2], owner, fabric, srq_error)
        for program in programs:
            program.unload()
        with check("ib0 carries 60,000 bytes in connected mode, and 56 bytes after it returns to datagram mode"):
            for mode, length in (("connected", 60000), ("datagram", 56)):
                for node in nodes:
                    node.run(f"echo {mode} >/sys/class/net/ib0/mode && {{ test {mode} = datagram || ip link set ib0 mtu 65520; }}")
                    node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
                for number, outsider in enumerate(others, 2):
                    for source, target in ((ours, f"10.0.0.{number}"), (outsider, "10.0.0.1")):
                        # The first ones may be dropped because they are too long for a datagram.
                        source.wait_for(f"ping -c 1 -W 5 -q -s {length} {target}", timeout=60, what=f"an answer to {length} bytes from {target}")
        with check("perfquery and saquery work with weft's driver"):
            assert re.search(r"PortXmitPkts:\.*[1-9]", ours.run("perfquery -x").out)
            assert ours.run("saquery NR").out.count("NodeRecord dump") >= 4
        with check("a card with a catastrophic error is reset and works again"):
            starts = "dmesg | grep -c 'started in'"
            before = int(ours.run(starts).out)
            fabric.weft("card", "fault", "node1", "catastrophic")
            ours.wait_for(f"test $({starts}) -gt {before}", timeout=60, what="the card's new start")
            ours.wait_for("ip link set ib0 up && ip addr replace 10.0.0.1/24 dev ib0", timeout=60, what="the new ib0")
            ours.wait_for("ping -q -c 1 -W 1 10.0.0.2", timeout=60, what="an answer of node2")
        ours.run("rmmod " + " ".join(reversed(STACK)))


@test(kernels=(), also=("stock", "plain"), timeout=300)
def opensm_on_mthca_takes_over_from_the_weft_subnet_manager(lab):
    """OpenSM on the card, first with Debian's driver and then with weft's, takes over from weft's subnet manager, which takes over again when OpenSM
    is killed."""
    with three(lab) as (_, nodes):
        ours, theirs, witness = nodes
        for manager in (theirs, ours):
            with check(f"OpenSM on {manager.name} is the master until it is killed"):
                own = int(manager.run("cat /sys/class/infiniband/mthca0/ports/1/lid").out, 16)
                running = manager.spawn(f"{OPENSM} -p 14")
                witness.wait_for(f"sminfo | grep -q 'sm lid {own} .*MASTER'", timeout=60, what="OpenSM to be the master")
                for node in (ours, theirs):
                    node.wait_for("ping -q -c 1 -W 1 10.0.0.3", timeout=60, what="an answer of node3")
                running.kill()
                witness.wait_for(f"sminfo | grep MASTER | grep -vq 'sm lid {own} '", timeout=60, what="weft's manager to be the master again")
                for node in (ours, theirs):
                    node.wait_for("ping -q -c 1 -W 1 10.0.0.3", timeout=60, what="an answer of node3")
        ours.run("rmmod " + " ".join(reversed(STACK)))


def ping_pong(node, device, other):
    """Runs a ping-pong between two cards of one guest."""
    command = "ibv_rc_pingpong -c -m 2048 -n 100 -d"
    serving = node.spawn(f"{command} {device}")
    node.wait_for("ss -ltn | grep -q :18515", timeout=20, what=f"the server on {device}")
    for out in (node.run(f"{command} {other} 127.0.0.1", timeout=60).out, serving.wait(60).out):
        assert "100 iters in" in out and "invalid data" not in out, out


@test(kernels=(), also=("stock",), timeout=240)
def three_cards_in_one_guest_exchange_messages(lab):
    """Two InfiniHosts and a ConnectX in one guest, first with weft's drivers and then with Debian's: each pair of them exchanges messages."""
    names = [*(name for name in STACK if name not in ("weft_ipoib", "weft_umad")), "weft_mlx4"]
    with lab.guest("node1", vfio_user=Fabric(lab, THREE).sockets, memory="768M") as node:
        for whose, begin, end in (("our", lambda: node.insmod(*(f"/share/{name}.ko" for name in names)), "rmmod " + " ".join(reversed(names))),
                                  ("Debian's", lambda: node.run("modprobe -a ib_mthca mlx4_ib ib_uverbs", timeout=60), "true")):
            begin()
            with check(f"three cards are active under {whose} drivers"):
                node.wait_for("test $(cat /sys/class/infiniband/*/ports/*/state | grep -c ACTIVE) = 3", timeout=60, what="three active ports")
            for one, other in (("mthca0", "mthca1"), ("mthca1", "mlx4_0"), ("mlx4_0", "mthca0")):
                with check(f"{one} and {other} exchange messages under {whose} drivers"):
                    ping_pong(node, one, other)
            node.run(end, timeout=60)
