# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides guests with Debian's own kernel, drivers and programs, and one card each, for interoperability tests with an independent stack. No guest
runs code of weft."""
import contextlib
import re
import shutil

from lab import cache, debian, echo
from lab.fabric import PAIR, Fabric

ULPS = ("mlx4_ib", "ib_uverbs", "ib_umad", "ib_ipoib")
KILLED = 137        # the status of `timeout -s KILL` if the time limit was reached


@contextlib.contextmanager
def check(sentence):
    """Checks one of several properties with one pair of guests. A failure reports the property."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while checking that {sentence}")
        raise


@contextlib.contextmanager
def guests(lab, lab_file=PAIR, *, log_level="info", **options):
    """Yields a fabric and a stock guest on each of its hosts, without drivers: (fabric, nodes). If the lab has an Ethernet, all hosts are on it."""
    fabric = Fabric(lab, lab_file, log_level)
    on_ethernet = "[[ethernet]]" in lab_file
    described = [lab.guest(f"node{number}", kernel="stock", vfio_user=[socket], **{"share": None, **options},
                          netdevs=[fabric.netdev(f"node{number}")] if on_ethernet else [])
                for number, socket in enumerate(fabric.sockets, 1)]
    with lab.boot(*described) as nodes:
        yield fabric, nodes


@contextlib.contextmanager
def pair(lab, lab_file=PAIR, **options):
    """Yields the same as guests(), with the drivers loaded and the ports active."""
    with guests(lab, lab_file, **options) as (fabric, nodes):
        load(*nodes)
        active(*nodes)
        yield fabric, nodes


PROGRAMS = "programs.tar"


def programs(*packages):
    """Returns a cached folder with an archive of Debian's packages, without their dependencies and documents, for use as the guests' `share`."""
    def make(directory):
        root = directory / "root"
        apt = debian.Apt(directory / "apt", debian.guest_suites())
        root.mkdir()
        for package in packages:
            debian.unpack(apt.download_alone(package), root)
        # A guest reads one file faster than hundreds.
        cache.tool("tar", "-c", "-f", directory / PROGRAMS, "--owner=0", "--group=0", "-C", root, "--exclude=./usr/share/doc", "--exclude=./usr/share/man", ".")
        for folder in (root, apt.directory):
            shutil.rmtree(folder)
    return cache.entry("guest-programs", cache.key_of(2, *packages), make, need_mib=200, product=PROGRAMS)


def install(*nodes):
    """Unpacks the shared folder's programs in the guests."""
    for node in nodes:
        node.run(f"tar -C / -x --keep-directory-symlink -f /share/{PROGRAMS}")


def load(*nodes, options=""):
    """Loads the stock drivers; options are mlx4_core's."""
    for node in nodes:
        node.run(f"modprobe mlx4_core {options} && modprobe -a {' '.join(ULPS)}", timeout=60)


def unload(*nodes):
    """Unloads the stock drivers and their dependencies; fails if one is still in use."""
    for node in nodes:
        node.run("modprobe -r ib_ipoib ib_umad; modprobe -r mlx4_ib && modprobe -r mlx4_core; modprobe -r ib_core", timeout=60, check=False)
        left = node.run("grep -E '^(mlx4|ib_)' /proc/modules", check=False).out
        assert left == "", left


def active(*nodes, ports=1, timeout=60):
    """Waits until each card has this many active ports."""
    for node in nodes:
        node.wait_for(f"test $(cat /sys/class/infiniband/*/ports/*/state | grep -c ACTIVE) = {ports}", timeout=timeout, what="active ports")


def reactivate(fabric, *nodes):
    """Lets the port of each card go down and up again. Linux's SA client reads the address of the subnet manager when the port changes. On a busy host the port
    can become active before the client is registered, and ib0 would then wait forever for the next change."""
    for node in nodes:
        node.wait_for("test -e /sys/class/net/ib0", timeout=120, what="ib0")
        fabric.weft("link", "down", node.name)
        node.wait_for("! grep -q ACTIVE /sys/class/infiniband/*/ports/1/state", what="the port to go down")
        fabric.weft("link", "up", node.name)
    active(*nodes)


def lid(node, port=1):
    return int(node.run(f"cat /sys/class/infiniband/*/ports/{port}/lid").out, 16)


def interfaces_up(*nodes, dev="ib0", network="10.0.0"):
    """Sets the interface up with an address on each node; returns when each has joined its broadcast group."""
    for number, node in enumerate(nodes, 1):
        node.wait_for(f"test -e /sys/class/net/{dev}", timeout=20, what=dev)
        node.run(f"ip addr add {network}.{number}/24 dev {dev} && ip link set {dev} up")
    for node in nodes:
        node.wait_for(f"ip link show dev {dev} | grep -q LOWER_UP", timeout=60, what=f"{dev}'s carrier")


def ping(source, target, address, count, options="-f", timeout=120):
    """Checks that none of count packets is lost. It first resolves the addresses, because ib_ipoib queues at most three packets meanwhile."""
    source.wait_for(f"ping -q -c 1 -W 1 {address}", timeout=30, what=f"a first answer of {address}")
    echo.ping(source, target, address, count, options, timeout)


def served(server, client, command, server_command=None, address="10.0.0.1", port=18515, timeout=120):
    """Runs a program as a server and as a client; both must succeed. Returns (server's, client's) output."""
    serving = server.spawn(server_command or command)
    # Do not connect to find out whether the server listens, because it would mistake that connection for the client.
    server.wait_for(f"ss -ltn | grep -q :{port}", timeout=30, what=f"`{serving.command}` to listen")
    asking = client.run(f"{command} {address}", timeout)
    return serving.wait(timeout).out, asking.out


LATE = re.compile(r"clocksource|hrtimer: interrupt took|tsc: |APIC calibration|ACPI: IRQ \d+ override")


def complaints(node, pattern="."):
    """Returns lines of level warning and worse in the kernel's log that match, except those about clocks and timers that a busy host has delayed."""
    lines = node.run("dmesg -x -l emerg,alert,crit,err,warn").out.splitlines(keepends=True)
    return "".join(line for line in lines if re.search(pattern, line) and not LATE.search(line))
