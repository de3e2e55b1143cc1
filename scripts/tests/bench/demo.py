# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how long the demonstration takes when everything is built and cached, in total and by step."""
import json
import subprocess

from lab import cache
from lab.benchmarks import benchmark

RUNS = 3
TIMES = cache.TREE / "build/demo/times.json"
# The image is downloaded while the programs are compiled, and the modules are built while the guests boot, so only the waits for them count.
CONCURRENT = "(concurrent)"


def consecutive(times):
    """Returns the parts of a demonstration that add up to the time of its first ping, from the contents of times.json."""
    parts = {name: seconds for name, seconds in times["parts"].items() if not name.endswith(CONCURRENT)}
    return {**parts, "rest": times["first ping"] - sum(parts.values())}


@benchmark(figures=("demo.first-ping", "demo.part.*"), kernel="stock")
def duration_of_the_demo(bench):
    """Measures the time from the start of make demo to the answer of the first ping, in total and by part."""
    def once():
        subprocess.run([cache.TREE / "scripts/demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        times = json.loads(TIMES.read_text())
        return times["first ping"], consecutive(times)

    once()
    taken = [once() for _ in range(RUNS)]
    bench.figure("demo.first-ping", "s", [whole for whole, _ in taken])
    for name in taken[0][1]:
        bench.figure(f"demo.part.{name.replace(' ', '-')}", "s", [parts[name] for _, parts in taken])
