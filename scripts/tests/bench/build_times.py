# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how long the build and test tools take."""
import os
import subprocess
import time

from lab import cache, host, image, kernels, modules, qemu
from lab.benchmarks import benchmark


def timed(function):
    started = time.monotonic()
    function()
    return time.monotonic() - started


@benchmark(figures=("boot.stock", "boot.plain", "boot.debug"))
def guest_boot_time(bench):
    """Measures the time from starting QEMU to the answer of the first command."""
    qemu.find()
    image.root_image()

    def once(kernel):
        with bench.guest(kernel=kernel, share=None) as guest:
            guest.run("true")

    for kernel in kernels.VARIANTS:
        kernels.find(kernel)
        once(kernel)
        bench.figure(f"boot.{kernel}", "s", [timed(lambda kernel=kernel: once(kernel)) for _ in range(3)])


@benchmark(figures=("build.modules.one-cpp", "build.modules.nothing"))
def incremental_build_time(bench):
    """Measures the time to build the modules again after one C++ file was touched (each of three files), and after no change."""
    kernel = kernels.find("plain")
    # Touched files are compiled, and not taken from the compiler cache.
    os.environ["CCACHE_DISABLE"] = "1"
    try:
        modules.build(kernel.kdir)
        sources = sorted(path for room in ("core", "hw", "ulp") for path in (cache.TREE / room).rglob("*.cpp") if path.with_suffix(".o").name
                         in {built.name for built in (cache.TREE / "build/kbuild" / kernel.release).rglob("*.o")})
        picked = bench.random.sample(sources, min(3, len(sources)))
        samples = []
        for source in picked:
            source.touch()
            samples.append(timed(lambda: modules.build(kernel.kdir)))
        if samples:
            bench.figure("build.modules.one-cpp", "s", samples)
        bench.figure("build.modules.nothing", "s", [timed(lambda: modules.build(kernel.kdir)) for _ in range(3)])
    finally:
        del os.environ["CCACHE_DISABLE"]


@benchmark(figures=("test.warm",))
def duration_of_all_tests(bench):
    """Measures the time of make test if everything is built and cached."""
    host.build()
    host.SANITIZED.build({"all", "fuzzers"})
    for variant in ("plain", "stock"):
        modules.build(kernels.find(variant).kdir)
    log = bench.directory / "test.log"

    def once():
        with open(log, "wb") as output:
            subprocess.run([cache.TREE / "scripts/test"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True,
                           env={name: value for name, value in os.environ.items() if name != "ONLY"})

    bench.figure("test.warm", "s", timed(once))
