# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides Debian's ibsim and OpenSM, unpacked but not installed: a simulated subnet that only answers MADs, for measuring subnet managers."""
import os
import subprocess
import time

from lab import cache, debian
from lab.errors import LabError

PACKAGES = ("ibsim-utils", "opensm")
PRODUCT = "usr/bin/ibsim"
FORMAT = 2      # incremented when the entry is created differently
KEY = cache.key_of(FORMAT, *PACKAGES)
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def _make(directory):
    apt = debian.Apt(directory / "apt")
    wanted = ("ibsim-utils", "opensm", "libopensm9", "libosmcomp5", "libosmvendor5", "libibumad3", "libibmad5", "libumad2sim0", "libwrap0")
    for package in wanted:
        debian.unpack(apt.download_alone(package), directory)
    cache.tool("rm", "-r", directory / "apt")


def root():
    """Returns the directory with ibsim and OpenSM."""
    return cache.entry("ibsim", KEY, _make, need_mib=50, product=PRODUCT)


def net_of(topology):
    """Returns the input of ibsim for a generated topology. The manager's port is the first one of the first host."""
    ends = {}
    for a, b, _ in topology.links:
        named = [(end.split("/")[0], int((end.split("/") + ["1"])[1])) for end in (a, b)]
        for own, other in (named, named[::-1]):
            ends.setdefault(own[0], []).append((own[1], *other))
    blocks = []
    for kind, nodes in (("Hca", topology.hosts), ("Switch", topology.switches)):
        for name, node in nodes.items():
            ports = "".join(f'[{own}]\t"{other}"[{port}]\n' for own, other, port in sorted(ends[name]))
            blocks.append(f'{kind}\t{node.ports or 1} "{name}"\n{ports}')
    return "\n".join(blocks)


class Simulator:
    """An ibsim with a subnet, on which OpenSM can run."""

    def __init__(self, topology, directory, net=None, host=None):
        """net: the output of ibnetdiscover, instead of a generated topology; host: the node on which programs run."""
        self.directory = directory
        self._root = root()
        libraries = self._root / LIBRARIES
        self._environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "IBSIM_SOCKNAME": f"weft-{os.getpid()}", "OSM_TMP_DIR": str(directory),
                             "OSM_CACHE_DIR": str(directory)}
        self._preload = libraries / "umad2sim/libumad2sim.so"
        if host:
            self._environment["SIM_HOST"] = host
        file = directory / "net"
        file.write_text(net or net_of(topology))
        nodes = len(topology.hosts) + len(topology.switches)
        ports = sum(node.ports + 1 for node in topology.switches.values()) + 2 * len(topology.hosts)
        self._log = open(directory / "ibsim.log", "w")
        # ibsim exits at the end of its input.
        self._ibsim = subprocess.Popen([self._root / PRODUCT, "-s", "-N", str(nodes + 16), "-S", str(len(topology.switches) + 16), "-P", str(2 * ports),
                                        str(file)], env=self._environment, stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT)

    def ready(self):
        """Returns whether ibsim serves. Its socket exists once it waits for its next command."""
        if self._ibsim.poll() is not None:
            raise LabError(f"ibsim ended: {(self.directory / 'ibsim.log').read_text()[-500:]}")
        with open("/proc/net/unix", encoding="ascii", errors="replace") as sockets:
            return self._environment["IBSIM_SOCKNAME"] in sockets.read()

    @property
    def environment(self):
        """Returns the environment of programs on the subnet."""
        return {**self._environment, "LD_PRELOAD": str(self._preload)}

    @property
    def process(self):
        return self._ibsim.pid

    def program(self, name):
        return str(self._root / "usr/sbin" / name)

    def opensm(self, timeout):
        """Returns the seconds from OpenSM's start until the subnet is up and OpenSM exits (-o)."""
        log = self.directory / "opensm.log"
        log.unlink(missing_ok=True)
        began = time.monotonic()
        done = subprocess.run([self.program("opensm"), "-o", "-f", log], timeout=timeout, check=False, env=self.environment, capture_output=True, text=True)
        took = time.monotonic() - began
        # OpenSM's exit status does not show whether the subnet is up.
        if "SUBNET UP" not in log.read_text(errors="replace"):
            raise LabError(f"OpenSM: {done.returncode}, {done.stdout[-500:]}{done.stderr[-500:]}")
        return took

    def close(self):
        self._ibsim.kill()
        self._ibsim.wait()
        self._log.close()
