# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs benchmarks: functions in tests/bench/*.py anywhere in the tree, each of which measures some figures.

    from lab.benchmarks import benchmark

    @benchmark(figures=("boot.plain",))
    def boot(bench):
        bench.figure("boot.plain", "s", ours=[measure() for _ in range(3)])

A figure is the median of its samples, compared with a reference measured in the same run if there is one.
"""
import dataclasses
import fnmatch
import inspect
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess

from lab import accelerator, cache, qemu
from lab.testing import Lab, load

MARK = "_weft_benchmark"


@dataclasses.dataclass
class Figure:
    name: str
    unit: str
    ours: float
    reference: float | None
    ratio: float | None     # ours over reference
    spread: float           # spread of weft's samples: (largest - smallest) / median
    samples: list
    reference_samples: list

    def line(self):
        reference = "-" if self.reference is None else f"{self.reference:.6g}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        return f"figure {self.name} {self.unit} {self.ours:.6g} {reference} {ratio} {self.spread:.3f}"


def benchmark(*, figures, kernel="plain", needs=None):
    """Marks a function as a benchmark. figures: the names that it measures, as patterns ("kern.*"); kernel: the variant for lab.kernel; needs: an
    environment variable without which the benchmark is skipped."""
    def mark(wrapped):
        if needs and not os.environ.get(needs):
            return wrapped
        setattr(wrapped, MARK, (tuple(figures), kernel))
        return wrapped
    return mark


class Bench(Lab):
    """Environment of a benchmark: a Lab (guests, host programs, a folder) that records figures."""

    def __init__(self, kernel, directory, seed, figures):
        super().__init__(kernel, directory, seed)
        self._figures = figures

    def figure(self, name, unit, ours, reference=()):
        """Adds a figure and prints its line. ours, reference: samples, or one number."""
        ours = [ours] if isinstance(ours, (int, float)) else list(ours)
        reference = [reference] if isinstance(reference, (int, float)) else list(reference)
        median = statistics.median(ours)
        beside = statistics.median(reference) if reference else None
        ratio = median / beside if beside else None
        spread = (max(ours) - min(ours)) / median if median else 0.0
        taken = Figure(name, unit, median, beside, ratio, spread, ours, reference)
        self._figures.append(taken)
        print(taken.line(), flush=True)


def discover():
    """Yields all (function, figure patterns, kernel) of benchmarks in the tree."""
    files = sorted(path for path in cache.TREE.glob("*/**/tests/bench/*.py") if path.relative_to(cache.TREE).parts[0] != "build")
    for path in files:
        for _, function in inspect.getmembers(load(path), inspect.isfunction):
            if hasattr(function, MARK):
                yield function, *getattr(function, MARK)


def selected(only, patterns):
    """Returns whether `only` (the name of a figure, a pattern, or the first words of a name) can select one of the patterns."""
    return not only or any(fnmatch.fnmatch(pattern, only) or fnmatch.fnmatch(only, pattern) or pattern.startswith(only) for pattern in patterns)


def run(function, kernel, seed, figures):
    directory = cache.TREE / "build/bench" / function.__name__
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    bench = Bench(kernel, directory, seed, figures)
    try:
        function(bench)
    finally:
        bench.close()


def _git(*words):
    done = subprocess.run(["git", "-C", cache.TREE, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def surroundings(seed):
    """Returns the circumstances on which the figures depend: the commit and the host."""
    processor = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.machine())
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) >> 10
    return {"seed": seed, "commit": _git("rev-parse", "HEAD"), "modified": bool(_git("status", "--porcelain", "-uno")),
            "machine": {"processor": processor, "cpus": os.cpu_count(), "memory_mib": memory, "kernel": platform.release(),
                        "accelerator": "kvm" if accelerator.kvm_works() else "tcg", "qemu": qemu.version(),
                        "load": os.getloadavg()[0]}}


def write_json(path, figures, context):
    """Writes the figures. Those of earlier runs stay until they are measured again, and each has the circumstances of its measurement."""
    kept = []
    if path.exists():
        fresh = {figure.name for figure in figures}
        try:
            kept = [entry for entry in json.loads(path.read_text())["figures"] if entry["name"] not in fresh]
        except (ValueError, KeyError):
            kept = []
    entries = kept + [{**dataclasses.asdict(figure), **context} for figure in figures]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps({**context, "figures": sorted(entries, key=lambda entry: entry["name"])}, indent=1) + "\n")
    temporary.rename(path)
