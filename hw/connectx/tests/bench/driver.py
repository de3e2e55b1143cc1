# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The driver beside the kernel's own on the same emulated card: instructions a call, doorbells, time.

Both run on the stock kernel, each in a guest with a card of its own on one fabric; the measuring code is the same source.
"""
from lab import kernels, modules, reference
from lab.benchmarks import benchmark

OURS = [f"insmod /share/{name}.ko" for name in ("weft_kern", "weft_core", "weft_connectx")]
THEIRS = ["modprobe mlx4_ib"]


def fabric(bench):
    """A fabric of two cards; returns where its sockets are."""
    directory = bench.socket_path("fabric")
    directory.mkdir()
    bench.start(bench.program("weftd"), "--socket-dir", directory, until=(directory / "node2.sock").is_socket)
    return directory


def run(guest, *commands):
    for command in commands:
        guest.run(command, timeout=300)


@benchmark(figures=("driver.post-*", "driver.poll-*", "driver.req-notify", "driver.interrupt*"), kernel="stock")
def instructions(bench):
    """Counted, one guest after the other."""
    kernel = kernels.find("stock")
    modules.build(kernel.kdir)
    built = reference.build(kernel, bench.directory, "hw/connectx/tests/bench")
    sockets = fabric(bench)
    with bench.guest("ours", icount=True, vfio_user=[sockets / "node1.sock"]) as guest:
        run(guest, *OURS, "insmod /share/weft_card_figures.ko")
        ours = reference.figures(guest.sync_log())
    with bench.guest("theirs", icount=True, vfio_user=[sockets / "node2.sock"], share=built) as guest:
        run(guest, *THEIRS, "insmod /share/card_reference.ko")
        theirs = reference.figures(guest.sync_log())
    for name, count in ours.items():
        bench.figure(name, "insn", [count], [theirs[name]])
