# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a guest with weft's RNIC. The module weft_talk.ko makes connections in the guest's kernel, with the protocol of rping."""

MODULES = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_iw_cm", "weft_rdma_cm", "weft_amso1100", "weft_talk")
CONTROL = "/sys/kernel/debug/weft_talk/weft_talk"
PORT = 7174     # the port of rping


def lab(*nodes, others=(), ethernet='"lan"'):
    """Returns a lab file with one Ethernet, an RNIC for each of `nodes` and a virtio-net device for each of `others`; `ethernet`: link settings of
    the last RNIC."""
    cables = ['"lan"'] * (len(nodes) - 1) + [ethernet]
    hosts = [f'name = "{node}"\nmodel = "amso1100"\nethernet = {cable}' for node, cable in zip(nodes, cables, strict=True)]
    hosts += [f'name = "{other}"\nethernet = "lan"' for other in others]
    return '[sm]\nenabled = false\n[[ethernet]]\nname = "lan"\n' + "".join(f"[[host]]\n{host}\n" for host in hosts)


def begin(guest, address):
    """Loads the modules, and gives the RNIC an address (with prefix length), for which the kernel does not answer on eth0."""
    guest.run("set -e; " + "; ".join(f"insmod /share/{name}.ko" for name in MODULES) + f"; sysctl -qw net.ipv4.conf.all.arp_ignore=1; "
              f"ip address add {address} dev iw0; ip link set iw0 up; mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")


def send_command(guest, command, **options):
    """Sends a command to weft_talk; returns the Process. options: of Guest.run()."""
    return guest.run(f"echo {command} > {CONTROL}", **options)


def serve(guest):
    """Serves from now on, one connection at a time."""
    send_command(guest, f"serve port={PORT}")


def _ask(guest, command, address, words, options):
    to = " ".join(f"{letter}={part}" for letter, part in zip("abcd", address.split("."), strict=True))
    return send_command(guest, f"{command} {to} port={PORT} {words}", **options)


def talk(guest, address, words, **options):
    """Connects to an address, and compares the data that is exchanged (count=, size=, …); returns the Process."""
    return _ask(guest, "talk", address, words, options)


def measure(guest, address, words):
    """Connects to an address and measures (what=, count=, size=)."""
    return _ask(guest, "measure", address, words, {"timeout": 300})


def connect(guest, address, words):
    """Connects to an address and disconnects again, repeatedly (count=)."""
    return _ask(guest, "connect", address, words, {"timeout": 120})


def said(guest):
    """Returns the counters of weft_talk by name."""
    return {name: int(value) for name, value in (word.split("=") for word in guest.run(f"cat {CONTROL}").out.split())}


def end(guest):
    """Unloads the modules."""
    guest.run("rmmod " + " ".join(reversed(MODULES)))
