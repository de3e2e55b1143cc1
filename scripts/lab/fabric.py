# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the fabric of a test: one weftd, and the command-line program that controls it."""
import re
import subprocess

from lab import kernels, vm

# Two hosts on one switch.
PAIR = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
[[host]]
name = "node2"
[[link]]
ends = ["node1", "switch1"]
[[link]]
ends = ["node2", "switch1"]
"""

# Two hosts with two-port cards; each port is connected to a switch of its own.
TWO_PORTS = """
[[switch]]
name = "switch1"
[[switch]]
name = "switch2"
[[host]]
name = "node1"
ports = 2
[[host]]
name = "node2"
ports = 2
[[link]]
ends = ["node1/1", "switch1"]
[[link]]
ends = ["node2/1", "switch1"]
[[link]]
ends = ["node1/2", "switch2"]
[[link]]
ends = ["node2/2", "switch2"]
[[link]]
ends = ["switch1", "switch2"]
"""

HOST = re.compile(r'\[\[host\]\]\s*name = "([^"]+)"')
BY_VHOST_USER = '\nbus = "vhost-user"'


class Fabric:
    """A weftd that is stopped at the end of the test; lab_file is a lab as weft-lab.toml(5) describes it. The cards are for guests with the test's
    kernel; kernel_of lists hosts whose guests have another one ({"node2": "stock"})."""

    def __init__(self, lab, lab_file=PAIR, log_level="info", kernel_of=None):
        self._lab = lab
        self.directory = lab.socket_path("control.sock").parent
        file = lab.directory / "lab.toml"
        chosen = {host: (kernel_of or {}).get(host, lab.kernel) for host in HOST.findall(lab_file)}
        file.write_text(HOST.sub(lambda host: host[0] + (BY_VHOST_USER if kernels.is_native(chosen[host[1]]) else ""), lab_file))
        self.sockets = [self.directory / f"{host}.sock" for host in chosen]
        self.process = lab.start(lab.program("weftd"), "--lab", file, "--socket-dir", self.directory, "--seed", lab.seed & 0xffffffff,
                                 "--log-level", log_level, until=self._answers)

    def netdev(self, host):
        """Returns a guest's connection to the Ethernet of this host, for lab.guest(netdevs=[...])."""
        return vm.ethernet_netdev(self.directory / f"{host}-eth0.sock")

    def _answers(self):
        # It is not sufficient that the socket exists, because a killed daemon leaves it behind.
        return subprocess.run(self._command("fabric", "show"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20,
                              check=False).returncode == 0

    def _command(self, *arguments):
        return [self._lab.program("weft"), "--socket-dir", self.directory, *map(str, arguments)]

    def weft(self, *arguments, **options):
        """Runs the program `weft` on this fabric; returns its output. options: of subprocess.run(), such as input."""
        return subprocess.run(self._command(*arguments), check=True, stdout=subprocess.PIPE, text=True, timeout=60, **options).stdout

    def log(self):
        """Returns weftd's log so far."""
        return (self._lab.directory / "weftd.log").read_text(errors="replace")
