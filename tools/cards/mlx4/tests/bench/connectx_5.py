# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compares the emulated ConnectX-5 with the ConnectX-2, each with Debian's own drivers: instructions per call, doorbells, bandwidth, latency.

Measurements of time are interleaved, so that other load on the host affects both alike.
"""
import contextlib
import json
import subprocess

from lab import kernels, reference
from lab.benchmarks import benchmark
from card import SERVER, bandwidth, latency, message_rate, perftest, start_fabric, take_turns, wait_active

MODELS = ("mlx5", "mlx4")
WRITES = 2000


@benchmark(figures=("mlx5.post-*", "mlx5.poll-*", "mlx5.req-notify", "mlx5.interrupt*"), kernel="stock")
def instructions_of_mlx5(bench):
    """Instructions of the two drivers, in one guest after the other, by the module that also measures weft's drivers."""
    share = reference.build(kernels.find("stock"), bench.directory, "hw/mlx4/tests/bench")
    counts = {}
    for model in MODELS:
        _, sockets = start_fabric(bench, 1, prefix=model, model=model)
        with bench.boot(bench.guest(model, vfio_user=sockets, share=share, icount=True)) as (guest,):
            guest.run(f"modprobe {model}_ib", timeout=300)
            guest.run("insmod /share/card_reference.ko measure=counts && rmmod card_reference", timeout=300)
            counts[model] = reference.figures(guest.sync_log())
    for name, ticks in counts["mlx5"].items():
        bench.figure("mlx5" + name.removeprefix("driver"), "insn", [ticks], [counts["mlx4"][name]])


@contextlib.contextmanager
def pairs(bench):
    """Yields, for each model, its name and two guests with ib0."""
    found = {}
    with contextlib.ExitStack() as stack:
        for model in MODELS:
            _, sockets = start_fabric(bench, 2, prefix=model, model=model)
            guests = [bench.guest(f"{model}-{number}", vfio_user=[socket], share=None) for number, socket in enumerate(sockets, 1)]
            nodes = stack.enter_context(bench.boot(*guests))
            for number, node in enumerate(nodes, 1):
                node.run(f"modprobe {model}_ib; modprobe ib_uverbs; modprobe ib_ipoib; ip addr add {SERVER[:-1]}{number}/24 dev ib0; ip link set ib0 up", timeout=120)
                wait_active(node, f"{model}_0")
            nodes[1].wait_for(f"ping -c 1 -W 1 {SERVER}", timeout=60)
            found[model] = nodes
        yield found


def send_doorbells(bench, model):
    done = subprocess.run([bench.program("weft"), "--socket-dir", bench.socket_path(model), "--json", "counters", "--cards"], capture_output=True, check=True, timeout=20)
    return json.loads(done.stdout)[f"{model}2"]["send_doorbells"]


def doorbells_of_a_write(bench, model, nodes):
    """Returns the doorbells of send queues for each RDMA write of 8 bytes, posted one by one."""
    before = send_doorbells(bench, model)
    perftest(nodes, "ib_write_bw", f"{model}_0", f"-s 8 -n {WRITES} -l 1")
    return (send_doorbells(bench, model) - before) / WRITES


@benchmark(figures=("mlx5.write-*", "mlx5.messages", "mlx5.latency-polled"), kernel="stock")
def bandwidth_and_latency_of_mlx5(bench):
    """RDMA writes between two guests of each model."""
    with pairs(bench) as found:
        measures = {
            "write-doorbells": ("1", lambda model, nodes: doorbells_of_a_write(bench, model, nodes)),
            "write-64k": ("MB/s", lambda model, nodes: bandwidth(nodes, "ib_write_bw", f"{model}_0", 65536, 2048)),
            "write-1m": ("MB/s", lambda model, nodes: bandwidth(nodes, "ib_write_bw", f"{model}_0", 1 << 20, 512)),
            "messages": ("1/s", lambda model, nodes: message_rate(nodes, f"{model}_0", 20000)),
            "latency-polled": ("us", lambda model, nodes: latency(nodes, f"{model}_0", 1000))}
        for name, (unit, measure) in measures.items():
            samples = take_turns({model: lambda model=model, measure=measure: measure(model, found[model]) for model in MODELS})
            bench.figure(f"mlx5.{name}", unit, samples["mlx5"], samples["mlx4"])
