# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""How long the demonstration takes when everything is built and cached."""
import re
import subprocess

from lab import cache
from lab.benchmarks import benchmark

RUNS = 3


@benchmark(figures=("demo.first-ping",), kernel="stock")
def demo(bench):
    """From the start of make demo to the answer of the first ping."""
    def once():
        done = subprocess.run([cache.TREE / "scripts/demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return float(re.search(r"^\[ *([\d.]+) s\] the first ping is answered$", done.stdout, re.MULTILINE)[1])

    once()
    bench.figure("demo.first-ping", "s", [once() for _ in range(RUNS)])
