# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The verbs over a driver that does nothing, beside the same over the stock kernel's ib_core: instructions per operation.

Both run on the stock kernel, each in a guest of its own, since both export the same names.
"""
import re
import shutil
import subprocess

from lab import cache, kernels, modules, reports
from lab.benchmarks import benchmark

LINE = re.compile(r"^\w+: figure (\S+) (-?\d+)$")
ROOM = "core/tests/bench"
SHARED = "core/kern/bench"


def build_reference(kernel, directory):
    """Builds the reference against the kernel's own headers, in a copy, and returns where the module is."""
    tree = directory / "reference"
    for part in (ROOM, SHARED):
        shutil.copytree(cache.TREE / part, tree / part)
    subprocess.run(["make", "-C", kernel.kdir, f"M={tree / ROOM / 'reference'}", "modules"], stdin=subprocess.DEVNULL, check=True)
    return tree / ROOM / "reference"


def count(guest, *commands):
    with guest:
        for command in commands:
            guest.run(command, timeout=300)
        lines = [LINE.match(reports.message(line)) for line in guest.sync_log().splitlines()]
    return {match.group(1): int(match.group(2)) for match in lines if match}


@benchmark(figures=("verbs.*",), kernel="stock")
def verbs(bench):
    kernel = kernels.find("stock")
    modules.build(kernel.kdir)
    reference = build_reference(kernel, bench.directory)
    loading = [f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", "weft_verbs_figures")]
    ours = count(bench.guest("ours", icount=True), *loading)
    theirs = count(bench.guest("theirs", icount=True, share=reference), "modprobe ib_core",
                   "insmod /share/verbs_reference.ko")
    for name, instructions in ours.items():
        bench.figure(name, "insn", [instructions], [theirs[name]])
