# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compares a trunk between two processes of this host with a link inside one process, a plain TCP connection, a TCP connection with the
encryption of trunks, and Debian's libfabric over TCP. The samples are interleaved."""
import os
import re
import subprocess

from lab import image
from lab.benchmarks import benchmark
from lab.waiting import wait_until

ROUNDS = 5
WAYS = ("tcp", "records", "link", "trunk")
UNITS = {"small": "us", "large": "us", "stream": "MB/s"}
FABRIC_SIZES = {"small": 64, "large": 1 << 16}
FABRIC_COUNT = 5000
PORTS = re.compile(r"^\s*\d+: [0-9A-F:.]+:(?P<port>[0-9A-F]{4}) \S+ 0A ", re.MULTILINE)


def measure(bench, way):
    """Returns {figure: value} of one run of trunk_bench."""
    done = subprocess.run([bench.program("trunk_bench"), way], capture_output=True, text=True, timeout=300, check=True)
    return {name: float(value) for name, value in re.findall(r"^(small|large|stream) ([\d.]+)$", done.stdout, re.MULTILINE)}


class Libfabric:
    """fi_pingpong of the guests' root image, between two processes that poll, each with one CPU."""

    def __init__(self, bench):
        tree = image.root_tree()
        self._program = tree / "usr/bin/fi_pingpong"
        # In the package of this library, a script creates the link with the name that programs use.
        libraries = bench.directory / "libraries"
        libraries.mkdir()
        for library in tree.glob("usr/lib/libpsm1/libpsm_infinipath.so.1.*"):
            (libraries / "libpsm_infinipath.so.1").symlink_to(library)
        self._environment = {**os.environ, "LD_LIBRARY_PATH": f"{libraries}:{tree}/usr/lib/x86_64-linux-gnu:{tree}/lib/x86_64-linux-gnu"}
        self._cpus = sorted(os.sched_getaffinity(0))

    def _start(self, size, cpu, *more):
        return subprocess.Popen([self._program, "-p", "tcp", "-e", "msg", "-I", str(FABRIC_COUNT), "-S", str(size), *more], env=self._environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                preexec_fn=lambda: os.sched_setaffinity(0, {self._cpus[cpu % len(self._cpus)]}))

    def measure(self):
        """Returns {figure: microseconds of one way}."""
        found = {}
        for name, size in FABRIC_SIZES.items():
            with self._start(size, 0) as server:
                wait_until("fi_pingpong to listen", lambda: any(int(port, 16) == 47592 for port in PORTS.findall(listeners())), 30, interval=0.01)
                with self._start(size, 1, "127.0.0.1") as client:
                    text = client.communicate(timeout=120)[0]
                server.communicate(timeout=120)
            found[name] = float(text.splitlines()[-1].split()[-2])
        return found


def listeners():
    return "".join(open(f"/proc/net/{table}").read() for table in ("tcp", "tcp6"))


@benchmark(figures=("trunk.small.*", "trunk.large.*", "trunk.stream.*"))
def trunk(bench):
    """Measures one way of a message of 64 bytes and of 64 KiB, one at a time, and the rate of a stream of messages of 64 KiB."""
    libfabric = Libfabric(bench)
    samples = {}
    for _ in range(ROUNDS):
        for way in WAYS:
            samples.setdefault(way, []).append(measure(bench, way))
        samples.setdefault("libfabric", []).append(libfabric.measure())
    for name, unit in UNITS.items():
        ours = [sample[name] for sample in samples["trunk"]]
        for way in ("tcp", "records", "link", "libfabric"):
            if reference := [sample[name] for sample in samples[way] if name in sample]:
                bench.figure(f"trunk.{name}.{way}", unit, ours, reference)
