# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures the subnet manager on a fat tree of ten thousand hosts: 250 leaf switches with 40 hosts each, and four spine switches. Its samples are
interleaved with those of OpenSM on ibsim. Also measures weftd's resources for such a lab."""
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import time

from lab import cache, simulator
from lab.benchmarks import benchmark
from lab.waiting import wait_until

sys.path.insert(0, str(cache.TREE / "tools/weft/session"))
import topology  # noqa: E402

LEAVES, EACH, SPINES = 250, 40, 4
ROUNDS = 5


def made():
    return topology.fat_tree(LEAVES * EACH, 36, each=EACH, spines=SPINES)


@benchmark(figures=("subnet.active", "subnet.flap"))
def subnet_bring_up_and_flap_time(bench):
    """Measures the time from an unconfigured subnet to all ports ACTIVE, and the time after a link was unplugged and plugged in again."""
    ours, theirs, flaps = [], [], []
    with contextlib.closing(simulator.Simulator(made(), bench.directory)) as simulated:
        wait_until("ibsim to serve", simulated.ready, 60)
        for _ in range(ROUNDS):
            done = subprocess.run([bench.program("subnet_bench"), str(LEAVES), str(EACH), str(SPINES)], capture_output=True, text=True, check=True)
            seconds = dict(re.findall(r"^(\S+) ([\d.]+)$", done.stdout, re.MULTILINE))
            ours.append(float(seconds["active"]))
            flaps.append(float(seconds["flap"]))
            theirs.append(simulated.opensm(timeout=300))
    bench.figure("subnet.active", "s", ours, theirs)
    bench.figure("subnet.flap", "s", flaps)


def ask(client, command):
    client.sendall(json.dumps({"command": command}).encode() + b"\n")
    return json.loads(client.makefile("r").readline())["result"]


@benchmark(figures=("subnet.start", "subnet.memory"))
def start_time_and_memory_of_weftd(bench):
    """Measures the time from weftd's start with that lab until it serves, and its memory once all switches have their LIDs."""
    lab = made()
    lab.model = "endpoint"
    path = bench.directory / "lab.toml"
    path.write_text(lab.text())
    starts, sizes = [], []
    for turn in range(ROUNDS):
        folder = bench.socket_path(f"{turn}")
        folder.mkdir(mode=0o700)
        control = folder / "control.sock"
        began = time.monotonic()
        with open(bench.directory / f"weftd-{turn}.log", "w") as output, subprocess.Popen(
                [bench.program("weftd"), "--socket-dir", folder, "--lab", path], stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process:
            try:
                wait_until("weftd to serve", control.is_socket, 60, interval=0.01)
                starts.append(time.monotonic() - began)
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(control))
                    wait_until("all links", lambda: not ask(client, "fabric.sample")["down"], 120)
                    wait_until("LIDs", lambda: all(node["lid"] for node in ask(client, "fabric.show")["switches"]), 120)
                sizes.append(int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024)
            finally:
                process.terminate()
    bench.figure("subnet.start", "s", starts)
    bench.figure("subnet.memory", "MiB", sizes)
