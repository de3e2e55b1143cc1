# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Counts the instructions per verbs operation over a driver that does nothing, compared with the stock kernel's ib_core.

Both stacks run on the stock kernel, each in a guest of its own, because both export the same names.
"""
from lab import kernels, modules, reference
from lab.benchmarks import benchmark


def count(guest, *commands):
    with guest:
        for command in commands:
            guest.run(command, timeout=300)
        return reference.figures(guest.sync_log())


@benchmark(figures=("verbs.*",), kernel="stock")
def instructions_of_verbs(bench):
    kernel = kernels.find("stock")
    modules.build(kernel.kdir)
    built = reference.build(kernel, bench.directory, "core/verbs/tests/bench")
    loading = [f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", "weft_mad", "weft_verbs_figures")]
    ours = count(bench.guest("ours", icount=True), *loading)
    theirs = count(bench.guest("theirs", icount=True, share=built), "modprobe ib_core",
                   "insmod /share/verbs_reference.ko")
    for name, instructions in ours.items():
        bench.figure(name, "insn", [instructions], [theirs[name]])
