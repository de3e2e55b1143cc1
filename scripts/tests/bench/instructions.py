# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Counts the instructions per operation exactly: with -icount, one tick of the time-stamp counter is one instruction."""
import re

from lab import kernels, modules, reports
from lab.benchmarks import benchmark

# Output of a weft_*_bench.ko for each operation when it is inserted: that of weft's C++ code, next to that of the same code in C.
LINE = re.compile(r"^(?:weft_\w+: )?figure (\S+) (\S+) (\d+) (\d+)$")
BOOTS = 2   # the spread shows whether both counts agree


@benchmark(figures=("kern.*",))
def instructions_of_kernel_api_wrappers(bench):
    kernel = kernels.find("plain")
    modules.build(kernel.kdir)
    found = {}
    for path in sorted(modules.directory(kernel).glob("weft_*_bench.ko")):
        for boot in range(BOOTS):
            with bench.guest(f"{path.stem}-{boot}", icount=True) as guest:
                guest.insmod(*(f"/share/{needed.name}" for needed in modules.needed_by(path, path.parent)))
                guest.insmod(f"/share/{path.name}", timeout=300)
                for line in guest.sync_log().splitlines():
                    if match := LINE.match(reports.message(line)):
                        name, unit, ours, reference = match.groups()
                        samples = found.setdefault(name, (unit, [], []))
                        samples[1].append(int(ours))
                        samples[2].append(int(reference))
    for name, (unit, ours, reference) in found.items():
        bench.figure(name, unit, ours, reference)
