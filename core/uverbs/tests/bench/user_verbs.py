# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures the costs of user verbs and user MADs in the kernel, and compares weft's modules with the in-tree stack (mlx4, ib_uverbs, ib_umad), with
the same programs, kernel and card."""
import contextlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "guest"), str(HERE.parents[3] / "tools/cards/mlx4/tests/bench")]

from lab import cache, kernels, modules
from lab.benchmarks import benchmark
from card import DEVICES, bandwidth, latency, pingpong, take_turns
from programs import load

STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_mlx4", "weft_ipoib")
STOCK = ("mlx4_ib", "ib_uverbs", "ib_umad", "ib_ipoib")
PROGRAM = "/tmp/verbs_figures"
LINE = re.compile(r"^figure (\S+) (-?\d+)$", re.MULTILINE)
# Waits for everything that programs see of the device, and for ib0, but not for the port to become active, which depends on the subnet manager.
USABLE = "[ -c /dev/infiniband/uverbs0 -a -c /dev/infiniband/umad0 -a -c /dev/infiniband/issm0 -a -e /sys/class/net/ib0 ]"


def build(bench):
    """Builds the measuring program, which uses the guest's libibverbs. It exports an ioctl() that the library calls instead of libc's."""
    program = bench.directory / "verbs_figures"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-rdynamic", cache.TREE / "core/uverbs/tests/bench/verbs_figures.c", "-o", program,
                    "-libverbs"], stdin=subprocess.DEVNULL, check=True)
    return program.read_bytes()


def start_fabric(bench, names):
    """A weftd with a card for each name on one switch; returns the sockets."""
    text = '[[switch]]\nname = "leaf"\n' + "".join(
        f'[[host]]\nname = "{name}"\n[[link]]\nends = ["{name}", "leaf/{port}"]\n' for port, name in enumerate(names, 1))
    lab_file = bench.directory / "lab.toml"
    lab_file.write_text(text)
    sockets = [bench.socket_path(f"{name}.sock") for name in names]
    bench.start(bench.program("weftd"), "--socket-dir", sockets[0].parent, "--lab", lab_file, until=lambda: all(path.is_socket() for path in sockets))
    modules.build(kernels.find("stock").kdir)
    return sockets


def load_stock(node):
    node.run(f"modprobe -a {' '.join(STOCK)}", timeout=60)
    node.wait_for(USABLE, what="the devices of the stock stack")


def start(node, ours, program):
    if ours:
        load(node, names=STACK)
    else:
        load_stock(node)
    node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state", timeout=60, what="the port to be active")
    node.put(PROGRAM, program)
    node.run(f"chmod +x {PROGRAM}")


def figures(node, what):
    return {name: int(value) for name, value in LINE.findall(node.run(f"ulimit -l unlimited; {PROGRAM} {what}", timeout=600).out)}


@benchmark(figures=("user.insn-*", "user.memory-*"), kernel="stock")
def kernel_instructions_and_memory_of_user_verbs(bench):
    """Counts instructions in one guest after the other."""
    program = build(bench)
    sockets = start_fabric(bench, ("ours", "theirs"))
    taken = []
    for ours, socket in zip((True, False), sockets):
        with bench.guest("ours" if ours else "theirs", vfio_user=[socket], icount="sleep") as node:
            start(node, ours, program)
            taken.append({**figures(node, "counts"), **figures(node, "memory")})
    for name, value in taken[0].items():
        bench.figure(name, "insn" if "insn" in name else "bytes", [value], [taken[1][name]])


def time_to_load(node, command):
    """Seconds from the first module to the last device, by the guest's clock."""
    return int(node.run(f"begin=$(date +%s%N); {command} && until {USABLE}; do :; done && echo $(($(date +%s%N) - begin))", timeout=120).out) / 1e9


@benchmark(figures=("user.usable",), kernel="stock")
def time_until_user_verbs_are_usable(bench):
    """Samples of both stacks are interleaved, each on its own guest, with files that both guests have read before."""
    files = [f"/tmp/{name}.ko" for name in STACK]
    sockets = start_fabric(bench, ("ours", "theirs"))
    with bench.boot(*(bench.guest(name, vfio_user=[socket]) for name, socket in zip(("ours", "theirs"), sockets))) as (ours, theirs):
        ours.run(f"cp {' '.join(f'/share/{name}.ko' for name in STACK)} /tmp")
        loads = ((ours, " && ".join(f"insmod {file}" for file in files), f"rmmod {' '.join(reversed(STACK))}"),
                 (theirs, f"modprobe -a {' '.join(STOCK)}", "modprobe -r ib_ipoib ib_umad && modprobe -r mlx4_ib && modprobe -r mlx4_core && modprobe -r ib_core"))
        samples = ([], [])
        for round_ in range(4):
            for (node, load_all, unload_all), taken in zip(loads, samples):
                time = time_to_load(node, load_all)
                if round_:      # the first reads the files
                    taken.append(time)
                node.run(unload_all, timeout=60)
        bench.figure("user.usable", "s", *samples)


@contextlib.contextmanager
def two_pairs(bench):
    """Yields two guests on weft's stack and two on the in-tree stack: [(server, client), (server, client)]. Each pair has its own Ethernet, over which programs
    exchange their addresses."""
    names = ("ours1", "ours2", "theirs1", "theirs2")
    sockets = start_fabric(bench, names)
    wires = [bench.socket_path(f"{name}.eth") for name in names]
    guests = [bench.guest(name, vfio_user=[socket], memory="512M",
                          netdevs=[f"dgram,local.type=unix,local.path={wires[place]},remote.type=unix,remote.path={wires[place ^ 1]}"])
              for place, (name, socket) in enumerate(zip(names, sockets))]
    with bench.boot(*guests) as nodes:
        for place, node in enumerate(nodes):
            node.run(f"modprobe virtio_net && ip link set eth0 up && ip addr add 10.0.0.{place % 2 + 1}/24 dev eth0")
            if place < 2:
                load(node, names=STACK)
            else:
                load_stock(node)
            node.wait_for("grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state", timeout=60, what="the port to be active")
        yield nodes[:2], nodes[2:]


@benchmark(figures=("user.latency", "user.latency-event", "user.write-64k"), kernel="stock")
def latency_and_bandwidth_of_user_verbs(bench):
    """Measures perftest's polled latency and bandwidth, and a ping-pong with events; samples of both stacks are interleaved."""
    card = DEVICES["card"]
    with two_pairs(bench) as pairs:
        measures = {"latency": ("us", lambda pair: latency(pair, card, 2000)), "latency-event": ("us", lambda pair: pingpong(pair, card, 500)),
                    "write-64k": ("MB/s", lambda pair: bandwidth(pair, "ib_write_bw", card, 65536, 2000))}
        samples = take_turns({(name, place): lambda measure=measure, pair=pair: measure(pair)
                              for name, (_, measure) in measures.items() for place, pair in enumerate(pairs)})
        for name, (unit, _) in measures.items():
            bench.figure(f"user.{name}", unit, samples[name, 0], samples[name, 1])
