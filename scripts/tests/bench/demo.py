# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how long the demonstration takes when everything is built and cached, in total and by step."""
import json
import subprocess

from lab import cache
from lab.benchmarks import benchmark

RUNS = 3
TIMES = cache.TREE / "build/demo/times.json"
# The image is downloaded while the programs are compiled, so only the additional wait for it counts.
CONCURRENT = "image (concurrent)"


@benchmark(figures=("demo.first-ping", "demo.part.*"), kernel="stock")
def demo(bench):
    """The time from the start of make demo to the answer of the first ping, in total and by part."""
    def once():
        subprocess.run([cache.TREE / "scripts/demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        times = json.loads(TIMES.read_text())
        parts = {name: seconds for name, seconds in times["parts"].items() if name != CONCURRENT}
        return times["first ping"], {**parts, "rest": times["first ping"] - sum(parts.values())}

    once()
    taken = [once() for _ in range(RUNS)]
    bench.figure("demo.first-ping", "s", [whole for whole, _ in taken])
    for name in taken[0][1]:
        bench.figure(f"demo.part.{name.replace(' ', '-')}", "s", [parts[name] for _, parts in taken])
