# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs each libFuzzer target of the host programs for a short time, with AddressSanitizer and UndefinedBehaviorSanitizer."""
import os
import pathlib
import shutil
import subprocess
import time
from concurrent import futures

from lab import cache, host
from lab.errors import LabError
from lab.results import FAILED, PASSED, Result

BUILD = host.SANITIZED.directory
SECONDS = 2     # run time of each target; scripts/fuzz runs a given number of inputs
MEMORY = 2048   # MiB


def build(tree=host.SANITIZED):
    tree.build({"fuzzers"})


def targets(only=None, directory=BUILD):
    """Returns the names of the targets whose full names match, in order."""
    names = sorted(path.name for path in (directory / "fuzz").glob("*_fuzz"))
    if not names:
        raise LabError(f"there are no fuzz targets in {directory}", "scripts/test without --no-build makes them")
    return [name for name in names if not only or only.search(f"fuzz.{name}")]


def run(results, only, seed):
    """Runs each selected target briefly, one on each CPU at a time; returns their number."""
    chosen = targets(only)
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(lambda name: _run(name, seed), chosen):
            results.add(result)
    return len(chosen)


def _run(name, seed):
    directory = cache.TREE / "build/test/fuzz" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # With a seed of 0, libFuzzer would choose a random seed.
    command = [BUILD / "fuzz" / name, f"-max_total_time={SECONDS}", f"-seed={seed % 0xffffffff + 1}", "-max_len=512", f"-rss_limit_mb={MEMORY}",
               "-timeout=60", "-print_final_stats=1", f"-artifact_prefix={directory}/"]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=SECONDS + 120, check=False)
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output, status = (error.stdout or b"").decode(errors="replace"), "a timeout"
    seconds = time.monotonic() - begun
    pathlib.Path(directory / "log").write_text(output, encoding="utf-8")
    # A run without a single input proves nothing.
    if status == 0 and "stat::number_of_executed_units: 0" not in output:
        return Result("fuzz", name, PASSED, seconds=seconds)
    return Result("fuzz", name, FAILED, f"ended with {status} (seed {seed}); the input is in {directory}\n{output[-20000:]}", seconds)
