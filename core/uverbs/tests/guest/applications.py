# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests user verbs with Debian's perftest, UCX and Open MPI: between two guests on weft's modules and, except for Open MPI, between one of them and a guest on
Debian's in-tree stack, in either role."""
import contextlib
import itertools
import re

from lab.fabric import Fabric
from lab.testing import test

from programs import load, served, unload

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_mlx4", "weft_ipoib", "weft_iw_cm", "weft_rdma_cm", "weft_rdma_ucm")
NAMES = ("ours1", "ours2", "debian")
TRIO = '[[switch]]\nname = "switch1"\n' + "".join(f'[[host]]\nname = "{name}"\n[[link]]\nends = ["{name}", "switch1"]\n' for name in NAMES)
# Server and client, as indices of nodes.
PAIRINGS = ((0, 1), (0, 2), (2, 0))
FILE = "/tmp/buffer"        # in memory: the root's writable layer is a tmpfs
TRANSPORTS = {"send": ("RC", "UC", "UD", "XRC"), "write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"), "atomic": ("RC", "XRC")}
PERFTEST_PORT, UCX_PORT = 18515, 13337


def address(number):
    return f"10.0.0.{number + 1}"


@contextlib.contextmanager
def trio(lab, numbers=(0, 1, 2)):
    """Yields two guests with weft's stack and one with Debian's, or those of them in `numbers`, each with an address on ib0."""
    fabric = Fabric(lab, TRIO, kernel_of={"debian": "stock"})
    guests = [lab.guest(NAMES[number], cards=[fabric.sockets[number]], **({"kernel": "stock"} if number == 2 else {})) for number in numbers]
    with lab.boot(*guests) as nodes:
        for number, node in zip(numbers, nodes):
            if number < 2:
                load(node, names=STACK)
            else:
                node.run("modprobe -a mlx4_ib ib_uverbs ib_ipoib rdma_ucm", timeout=60)
                node.wait_for("ip link show dev ib0", what="ib0 of the stock stack")
            node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state", timeout=60, what="the port to be active")
            node.run(f"ip link set lo up && ip link set ib0 up && ip addr add {address(number)}/24 dev ib0")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        for node in nodes[1:]:
            node.wait_for(f"ping -c 1 -W 1 -q {address(0)}", timeout=60, what="an answer of ours1")
        yield nodes
        for number, node in zip(numbers, nodes):
            if number < 2:
                unload(node, names=STACK)


@contextlib.contextmanager
def between(pairing, what):
    """Adds the program and the two guests to the message of a failure."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while {NAMES[pairing[0]]} served {NAMES[pairing[1]]}: {what}")
        raise


def perftest_lines():
    """Yields every operation with every transport: latency tests, with inline data where supported, and bandwidth tests with events."""
    for operation, transports in TRANSPORTS.items():
        for transport in transports:
            inline = "-I 64" if operation in ("send", "write") else ""
            events = "-e" if operation != "write" else ""       # perftest has no events of writes
            yield operation, transport, "lat", inline
            yield operation, transport, "bw", events


def perftest(server, client, where, operation, transport, kind, options):
    """Runs one program of perftest. The data of RC and UC bandwidth tests is compared: their buffers are files that each side fills with random
    bytes, one half to send from and one to receive into."""
    bulk = 2048 if transport == "UD" else 65536
    size = 8 if operation == "atomic" else bulk if kind == "bw" else 32
    compared = kind == "bw" and operation != "atomic" and transport in ("RC", "UC")
    if compared:
        for node in (server, client):
            node.run(f"head -c {2 * size} /dev/zero >{FILE}")
    command = (f"ib_{operation}_{kind} -F -c {transport} -n 100 {options}" + (f" -s {size}" if operation != "atomic" else "") +
               (f" --mmap={FILE}" if compared else ""))
    out, _ = served(server, client, command, PERFTEST_PORT, address=where)
    row = re.search(rf"^ {size} +100 +([\d.]+)", out, re.MULTILINE)
    assert row and float(row[1]) > 0, f"{command}: {out}"
    if compared:
        at_server, at_client = server.get(FILE), client.get(FILE)
        assert at_server[size:] == at_client[:size] and any(at_client[:size]), f"{command}: what arrived differs from what was sent"


def ucx(server, client, where, transport):
    """Runs ucx_perftest over one of UCX's verbs transports."""
    environment = f"UCX_TLS={transport},self UCX_NET_DEVICES=mlx4_0:1"
    listening = server.spawn(f"{environment} ucx_perftest -p {UCX_PORT}")
    server.wait_for(f"ss -ltn | grep -q :{UCX_PORT}", what="ucx_perftest to listen")
    out = client.run(f"{environment} ucx_perftest {where} -p {UCX_PORT} -t tag_lat -n 500 -f", timeout=60).out
    assert re.search(r"^ +500 +[\d.]+ ", out, re.MULTILINE), out
    listening.wait(60)


@test(kernels=(), also=("stock",), timeout=600)
def perftest_and_ucx_perftest_complete_between_weft_and_debian_stacks(lab):
    """All of perftest with RC, UC, UD and XRC, with events and inline data (the data of RC and UC bandwidth tests is compared); and ucx_perftest
    with RC and UD. Both run between two guests with weft's stack, and with Debian's stack at either end."""
    with trio(lab) as nodes:
        turns = itertools.cycle(PAIRINGS)
        for line in perftest_lines():
            pairing = next(turns)
            with between(pairing, line):
                perftest(*(nodes[number] for number in pairing), address(pairing[0]), *line)
        for transport in ("rc_v", "ud_v"):
            pairing = next(turns)
            with between(pairing, transport):
                ucx(*(nodes[number] for number in pairing), address(pairing[0]), transport)


# Replaces ssh, by which mpirun starts a daemon on another node: sends a line to bash; the connection outlives it (-t).
RSH = r"""printf '#!/bin/sh\nhost=$1; shift; echo "{ $*; } </dev/null >/dev/null 2>&1" | exec socat -t 60 - TCP:$host:10022\n' >/usr/bin/rsh && chmod 755 /usr/bin/rsh"""
RSHD = "exec socat -t 60 TCP-LISTEN:10022,fork,reuseaddr EXEC:bash"


def open_mpi(nodes, numbers, program):
    """Runs a program in two ranks, the first of them on the node that starts it. Only Open MPI's daemons use TCP."""
    first, second = (nodes[number] for number in numbers)
    hosts = "".join(f"{address(number)} {NAMES[number]}\n" for number in numbers)
    for node in (first, second):
        node.run(f"printf '127.0.0.1 localhost\\n{hosts}' >/etc/hosts && {RSH}")
    listening = second.spawn(RSHD)
    second.wait_for("ss -ltn | grep -q :10022", what="a shell to listen")
    out = first.run("mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent rsh --mca pml ucx -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=mlx4_0:1 "
                    f"--host {','.join(NAMES[number] for number in numbers)} python3 -m mpi4py.bench {program}", timeout=120).out
    listening.kill()
    return out


@test(kernels=(), also=("stock",), timeout=300)
def open_mpi_ranks_in_two_guests_exchange_messages_over_ucx(lab):
    """Open MPI starts a rank in each of two guests with weft's stack. The ranks exchange messages through UCX over verbs."""
    with trio(lab, (0, 1)) as nodes:
        said = open_mpi(nodes, (0, 1), "helloworld")
        for rank in (0, 1):
            assert f"I am process {rank} of 2 on {NAMES[rank]}." in said, said
        said = open_mpi(nodes, (0, 1), "ringtest --size 65536 --loop 20")
        assert "time for 20 loops" in said, said
