# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Endpoints of weft_traffic.ko in guests, for tests: each is a QP that does what it is told and checks every byte."""
import contextlib
import re
import subprocess

from lab.waiting import wait_until

CONTROL = "/sys/kernel/debug/weft_traffic/control"
MODULES = ("weft_kern", "weft_core", "weft_connectx", "weft_traffic")


class Refused(Exception):
    """A command failed; the message holds what the module and the shell said."""


class Node:
    """A guest with the suite's modules, and what it has been asked to open."""

    def __init__(self, guest):
        self.guest = guest
        self._next = 0

    def load(self, *names):
        self.guest.insmod(*(f"/share/{name}.ko" for name in names or MODULES))
        self.guest.run("mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")

    def unload(self):
        self.guest.run(["rmmod", *reversed(MODULES)])

    def command(self, text, timeout=90):
        """Gives the module a command line; returns its answer's words as a dict, and as text under ''."""
        ran = self.guest.run(f"if echo '{text}' > {CONTROL}; then cat {CONTROL}; else cat {CONTROL}; false; fi",
                             timeout=timeout, check=False)
        if ran.status:
            raise Refused(f"{self.guest.name}: {text}: {ran.out}{ran.err}")
        answer = dict(re.findall(r"(\w+)=(\S+)", ran.out))
        status = re.search(r"status=(.*?)(?: \w+=|$)", ran.out.strip())
        if status:
            answer["status"] = status.group(1).strip()
        answer[""] = ran.out.strip()
        return answer

    def open(self, **options):
        number = self._next % 64
        self._next += 1
        return Endpoint(self, number, options)

    def wait_active(self, timeout=30):
        """Waits until the port is ACTIVE and has its LID."""
        def active():
            try:
                endpoint = self.open(type="ud")
            except Refused:    # no device at the moment
                return False
            state = endpoint.answer["state"], endpoint.answer["lid"]
            endpoint.close()
            return state[0] == "4" and state[1] != "0"
        wait_until(f"{self.guest.name}'s port to be ACTIVE", active, timeout * self.guest.slowness)


class Endpoint:
    def __init__(self, node, number, options):
        self.node = node
        self.number = number
        self.answer = node.command(f"open id={number} " + " ".join(f"{k}={v}" for k, v in options.items()))

    def __getattr__(self, name):
        """Any of the module's commands: endpoint.send(count=4, size=100)."""
        def call(timeout=90, **options):
            words = " ".join(f"{k}={v}" for k, v in options.items())
            return self.node.command(f"{name} id={self.number} {words}", timeout)
        return call

    @property
    def memory(self):
        """Where peers find its receiving region."""
        return {"addr": self.answer["addr"], "rkey": self.answer["rkey"]}

    def join(self, other, **options):
        """Connects both ways."""
        for one, two in ((self, other), (other, self)):
            one.connect(lid=two.answer["lid"], qpn=two.answer["qpn"], **options)


@contextlib.contextmanager
def pair(lab, **options):
    """Two guests with our driver on a fabric of weftd, ports active: (node, node, fabric)."""
    directory = lab.socket_path("fabric")
    directory.mkdir()
    lab.start(lab.program("weftd"), "--socket-dir", directory, "--seed", lab.seed & 0xffffffff,
              until=(directory / "node2.sock").is_socket)
    fabric = Fabric(lab, directory)
    with lab.boot(lab.guest("node1", vfio_user=[directory / "node1.sock"], **options),
                  lab.guest("node2", vfio_user=[directory / "node2.sock"], **options)) as guests:
        nodes = [Node(guest) for guest in guests]
        for node in nodes:
            node.load()
        for node in nodes:
            node.wait_active()
        yield *nodes, fabric


class Fabric:
    """The running fabric, by the command line that anyone would use."""

    def __init__(self, lab, directory):
        self._argv = [lab.program("weft"), "--socket-dir", directory]

    def link(self, name, **settings):
        subprocess.run([*map(str, self._argv), "link", "set", name, *(f"{k}={v}" for k, v in settings.items())], check=True,
                       capture_output=True, timeout=20)
