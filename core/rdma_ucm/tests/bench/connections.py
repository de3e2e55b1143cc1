# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures connection setup with weft's modules, and compares it with the in-tree stack (ib_cm, rdma_cm, rdma_ucm over mlx4) on the same card and
kernel.

Two pairs of guests, one pair on each stack, run on one fabric at the same time. Samples of the two stacks are interleaved, so that other load on the
host affects both alike.
"""
import contextlib
import re
import subprocess

from lab import cache, kernels, modules
from lab.benchmarks import benchmark

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_mlx4", "weft_ipoib", "weft_iw_cm", "weft_rdma_cm", "weft_rdma_ucm")
DEBIANS = ("mlx4_ib", "ib_uverbs", "ib_ipoib", "rdma_ucm")
LISTENS = "ls -l /proc/*/fd 2>/dev/null | grep -q infiniband/rdma_cm"
ROUNDS = 3
ALONE = 24          # one connection is done in ten milliseconds, of which waking four processes is most: its samples differ by half
STACKS = ("ours", "theirs")
OPEN = 8000         # two ids each: a user has 16,384
OPEN_AWAY = 10400   # one; the first 400 are disconnected
LINE = re.compile(r"^figure (\S+) (-?\d+)$", re.MULTILINE)


def lab_file(bench, names):
    text = '[[switch]]\nname = "leaf"\n'
    for port, name in enumerate(names, 1):
        text += f'[[host]]\nname = "{name}"\n[[link]]\nends = ["{name}", "leaf/{port}"]\n'
    path = bench.directory / "lab.toml"
    path.write_text(text)
    return path


def start_fabric(bench, names):
    """A weftd with a card for each name on one switch; returns the sockets."""
    modules.build(kernels.find("stock").kdir)
    sockets = [bench.socket_path(f"{name}.sock") for name in names]
    bench.start(bench.program("weftd"), "--socket-dir", sockets[0].parent, "--lab", lab_file(bench, names),
                until=lambda: all(path.is_socket() for path in sockets))
    return sockets


def begin(node, stack, address):
    """ib0 of the stack, with its address, going up."""
    if stack == "ours":
        node.insmod(*(f"/share/{name}.ko" for name in STACK))
    else:
        node.run(f"modprobe mlx4_core && modprobe -a {' '.join(DEBIANS)}", timeout=60)
    node.wait_for("test -e /sys/class/net/ib0", timeout=20, what="ib0")
    node.run(f"ip link set ib0 up && ip addr add {address} dev ib0")


@contextlib.contextmanager
def pairs(bench):
    """Yields both pairs, each at 10.0.PAIR.N on ib0: {"ours": (server, client, address of the server), "theirs": …}. "ours" is weft's stack."""
    names = [f"{stack}{number}" for stack in STACKS for number in (1, 2)]
    sockets = start_fabric(bench, names)
    with bench.boot(*(bench.guest(name, vfio_user=[socket]) for name, socket in zip(names, sockets))) as nodes:
        for number, node in enumerate(nodes):
            begin(node, STACKS[number // 2], f"10.0.{number // 2}.{number % 2 + 1}/24")
        for node in nodes:
            node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 on {node.name}")
        ends = {stack: (*nodes[2 * pair:2 * pair + 2], f"10.0.{pair}.1") for pair, stack in enumerate(STACKS)}
        for _server, client, address in ends.values():
            client.wait_for(f"ping -c 1 -W 1 -q {address}", timeout=60, what="an answer")
        yield ends


def by_cmtime(server, client, address, count):
    """Returns connections a second, from cmtime's time for its step `connect`: with QPs, from the call to the event."""
    serving = server.spawn("cmtime")
    try:
        server.wait_for(LISTENS, timeout=20, what="cmtime to listen")
        out = client.run(f"cmtime -s {address} -c {count}", timeout=300).out
    finally:
        serving.kill()
        serving.wait(30, check=False)
    milliseconds = float(re.search(r"^connect *: *([\d.]+)", out, re.MULTILINE)[1])
    return count / milliseconds * 1000


@benchmark(figures=("cm.cmtime-1", "cm.cmtime-1000"), kernel="stock")
def connection_rate_of_cmtime(bench):
    """Runs cmtime with one connection, without other load on the pair, and with a thousand at a time."""
    with pairs(bench) as ends:
        for count, rounds in ((1, ALONE), (1000, ROUNDS)):
            samples = {stack: [] for stack in STACKS}
            for stack in STACKS:
                by_cmtime(*ends[stack], 1)  # the first one of all reads the program, and asks for the way
            for _ in range(rounds):
                for stack in STACKS:
                    samples[stack].append(by_cmtime(*ends[stack], count))
            bench.figure(f"cm.cmtime-{count}", "1/s", samples["ours"], samples["theirs"])


def counting(bench):
    """The program that counts, as bytes."""
    program = bench.directory / "connections"
    subprocess.run(["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror", cache.TREE / "core/rdma_ucm/tests/bench/connections.c", "-o", program],
                   stdin=subprocess.DEVNULL, check=True)
    return program.read_bytes()


def ready(node, stack, address, program):
    """ib0 is up, and the program there."""
    begin(node, stack, f"{address}/24")
    node.wait_for("ip link show dev ib0 | grep -q LOWER_UP", timeout=60, what=f"carrier of ib0 of {node.name}")
    node.put("/tmp/connections", program)
    node.run("chmod +x /tmp/connections")


def figures(bench, outputs):
    """Records the figures that the program has printed on each stack."""
    ours, theirs = ({name: int(value) for name, value in LINE.findall(output)} for output in outputs)
    for name, value in ours.items():
        bench.figure(name, "insn" if "insn" in name else "bytes", [value], [theirs[name]])


@benchmark(figures=("cm.insn-*", "cm.memory"), kernel="stock")
def kernel_instructions_per_connection_within_a_guest(bench):
    """Counts instructions in one guest after the other, which connects to itself, also with many open connections."""
    program, outputs = counting(bench), []
    for stack, socket in zip(STACKS, start_fabric(bench, STACKS)):
        with bench.guest(stack, vfio_user=[socket], icount="sleep") as node:
            ready(node, stack, "10.0.0.1", program)
            outputs.append(node.run(f"/tmp/connections 10.0.0.1 {OPEN}", timeout=600).out)
    figures(bench, outputs)


@benchmark(figures=("cm.insn-*-asking*", "cm.memory-*"), kernel="stock")
def kernel_instructions_per_connection_between_guests(bench):
    """Counts the same between two guests, each of which counts its own end, also with ten thousand open connections."""
    names = [f"{stack}{number}" for stack in STACKS for number in (1, 2)]
    program, outputs, sockets = counting(bench), [], start_fabric(bench, names)
    for pair, stack in enumerate(STACKS):
        here = slice(2 * pair, 2 * pair + 2)
        with bench.boot(*(bench.guest(name, vfio_user=[socket], icount="sleep")
                          for name, socket in zip(names[here], sockets[here]))) as (server, client):
            ready(server, stack, "10.0.0.1", program)
            ready(client, stack, "10.0.0.2", program)
            client.wait_for("ping -c 1 -W 1 -q 10.0.0.1", timeout=60, what="an answer")
            serving = server.spawn(f"/tmp/connections - {OPEN_AWAY}")
            try:
                server.wait_for(LISTENS, timeout=20, what="the program to listen")
                out = client.run(f"/tmp/connections 10.0.0.1 {OPEN_AWAY} away", timeout=900).out
            finally:
                serving.kill()
                serving.wait(30, check=False)
            outputs.append(out + serving.out)
    figures(bench, outputs)
