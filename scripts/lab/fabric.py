# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The fabric of a test: one weftd, and the command-line program that controls it."""
import re
import subprocess

from lab import kernels, machine

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

# Two hosts with cards of two ports, each port on a switch of its own.
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
    """A weftd that is stopped when the test finishes. lab_file: the text of a lab file, weft-lab.toml(5). kernel_of: the kernels of guests that do not
    have the test's kernel ({"node2": "stock"}); the kernel determines the bus of a host's card."""

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
        """The QEMU option that attaches a guest to the host's Ethernet segment, for lab.guest(netdevs=[...])."""
        return machine.ethernet_netdev(self.directory / f"{host}-eth0.sock")

    def _answers(self):
        # The socket's existence would not suffice, because a weftd that was killed leaves it.
        return subprocess.run(self._command("fabric", "show"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20,
                              check=False).returncode == 0

    def _command(self, *arguments):
        return [self._lab.program("weft"), "--socket-dir", self.directory, *map(str, arguments)]

    def weft(self, *arguments, **options):
        """Runs the command line `weft` on this fabric; returns what it printed. options: subprocess.run()'s, as its input."""
        return subprocess.run(self._command(*arguments), check=True, stdout=subprocess.PIPE, text=True, timeout=60, **options).stdout

    def log(self):
        """Returns weftd's log so far."""
        return (self._lab.directory / "weftd.log").read_text(errors="replace")
