# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how the costs of a lab grow with its size. One benchmark sends packets through one switch from one to eight threads. Another compares
the start time and the resources of weftd with N and with 2N hosts, with interleaved samples. A ratio of 2 means linear growth. The third measures how
long requests wait while weftd is busy."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

from lab import cache
from lab.benchmarks import benchmark
from lab.waiting import wait_until

sys.path.insert(0, str(cache.TREE / "tools/weft/session"))
import topology  # noqa: E402

ROUNDS = 5
ROUNDS_OF_LABS = 3
THREADS = (1, 2, 4, 8)
CARDS = 500
ENDPOINTS = 5000
IDLE = 5                # seconds
CHANGES = 200           # samples, because /proc counts CPU time in ticks of 10 ms


@benchmark(figures=("scale.switch.*",))
def switch(bench):
    """Measures the packets a second through one switch, and the CPU time of a packet. 1, 2, 4 and 8 threads send to a port of their own each, or to the
    same port ("shared"), and are compared with one thread. Also counts the instructions of a packet, which do not depend on the load of the host."""
    def measured(*words):
        done = subprocess.run([bench.program("switch_bench"), *words], capture_output=True, text=True, timeout=120, check=True)
        return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.]+)$", done.stdout, re.MULTILINE)}
    runs = {(mode, threads): [] for threads in THREADS for mode in ("rate", "shared") if mode == "rate" or threads > 1}
    for _ in range(ROUNDS):
        for (mode, threads), samples in runs.items():
            samples.append(measured(mode, str(threads)))
    for name, unit in (("packets", "1/s"), ("cpu", "ns")):
        for (mode, threads), samples in runs.items():
            full = f"scale.switch.{name}-{threads}" + ("-shared" if mode == "shared" else "")
            bench.figure(full, unit, [sample[name] for sample in samples], [sample[name] for sample in runs["rate", 1]] if threads > 1 else ())
    counts = [measured("count") for _ in range(2)]
    for name in ("instructions", "atomics"):
        bench.figure(f"scale.switch.{name}", "1", [count[name] for count in counts])


def ask(client, command, **arguments):
    client.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
    return json.loads(client.makefile("r").readline())["result"]


def processor_time(process):
    """Returns the seconds of CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lab_of(bench, model, hosts):
    """Returns the path of a lab file with a fat tree."""
    lab = topology.fat_tree(hosts, 36, each=40, spines=4)
    lab.model = model
    path = bench.directory / f"{model}-{hosts}.toml"
    path.write_text(lab.text())
    return path


def measure(bench, lab, number):
    """Starts weftd with a lab; returns {figure: value}: the seconds of CPU time until the subnet is configured and the seconds that this takes, MiB of memory,
    the percentage of a CPU that it uses afterwards, and the milliseconds of CPU time of a complete answer to fabric.sample ("sample") and of one that contains
    only what has changed ("changes")."""
    folder = bench.socket_path(f"{number}")
    folder.mkdir(mode=0o700)
    control = folder / "control.sock"
    began = time.monotonic()
    with open(bench.directory / f"weftd-{number}.log", "w") as output, subprocess.Popen(
            [bench.program("weftd"), "--socket-dir", folder, "--lab", lab], stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                wait_until("weftd to serve", lambda: client.connect_ex(str(control)) == 0, 120, interval=0.01)
                served = time.monotonic() - began
                def sweeps():
                    manager = ask(client, "fabric.sample")["subnet_manager"]
                    return manager["complete"] and manager["sweeps"]
                wait_until("a subnet", sweeps, 300)
                started = processor_time(process)
                idle = None
                while idle is None:
                    present = sweeps()
                    before, at = processor_time(process), time.monotonic()
                    time.sleep(IDLE)
                    spent = (processor_time(process) - before) / (time.monotonic() - at) * 100
                    if sweeps() == present:
                        idle = spent
                before = processor_time(process)
                for _ in range(20):
                    ask(client, "fabric.sample")
                sample = (processor_time(process) - before) / 20 * 1000
                present = ask(client, "fabric.sample")
                before = processor_time(process)
                for _ in range(CHANGES):
                    present = ask(client, "fabric.sample", since=present["generation"])
                    if "since" not in present:
                        raise RuntimeError("the answer is complete")
                changes = (processor_time(process) - before) / CHANGES * 1000
            memory = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024
        finally:
            process.terminate()
    return {"serves": served, "start": started, "memory": memory, "idle": idle, "sample": sample, "changes": changes}


UNITS = {"serves": "s", "start": "s", "memory": "MiB", "idle": "%", "sample": "ms", "changes": "ms"}


@benchmark(figures=("scale.cards.*", "scale.endpoints.*"))
def labs(bench):
    """Compares labs of 1,000 unused cards with 500, and of 10,000 endpoints with 5,000."""
    numbers = iter(range(1000))
    for kind, model, hosts in (("cards", "mlx4", CARDS), ("endpoints", "endpoint", ENDPOINTS)):
        files = [lab_of(bench, model, count) for count in (2 * hosts, hosts)]
        samples = ([], [])
        for _ in range(ROUNDS_OF_LABS):
            for file, taken in zip(files, samples):
                taken.append(measure(bench, file, next(numbers)))
        for name, unit in UNITS.items():
            ours, reference = ([sample[name] for sample in taken] for taken in samples)
            bench.figure(f"scale.{kind}.{name}", unit, ours, reference if any(reference) else ())


@benchmark(figures=("scale.control.*",))
def control(bench):
    """Measures how long a request to the control socket and a path query wait, in a lab of 2,000 endpoints whose daemon is idle, sweeps, or answers
    fabric.show or fabric.sample without a pause."""
    lab = lab_of(bench, "endpoint", 2000)
    rounds = []
    for _ in range(ROUNDS_OF_LABS):
        done = subprocess.run([bench.program("control_bench"), lab, "3"], capture_output=True, text=True, timeout=300, check=True)
        rounds.append({name: float(value) for name, value in re.findall(r"^([\w-]+) ([\d.]+)$", done.stdout, re.MULTILINE)})
    for work in ("idle", "sweeps", "show", "sample"):
        for waits in ("control", "path"):
            for kind in ("median", "p99"):
                bench.figure(f"scale.control.{work}-{waits}-{kind}", "ms", [each[f"{work}-{waits}-{kind}"] for each in rounds])
