# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Fetches Debian's iPXE, with which a guest boots over InfiniBand: iPXE probes the card with its own driver and loads the kernel from a server."""
from lab import cache, debian

PACKAGE = "ipxe"
PRODUCT = "boot/ipxe.lkrn"
FORMAT = 1      # incremented when the entry is created differently
KEY = cache.key_of(FORMAT, PACKAGE)


def _make(directory):
    debian.unpack(debian.Apt(directory / "apt").download_alone(PACKAGE), directory, f"./{PRODUCT}")
    cache.tool("rm", "-r", directory / "apt")


def image():
    """Returns the file that QEMU boots; a script for it replaces the initial RAM disk."""
    return cache.entry("ipxe", KEY, _make, need_mib=100, product=PRODUCT) / PRODUCT


def present():
    """Returns whether image() needs no download."""
    return cache.present("ipxe", KEY, PRODUCT)


def network_boot(address, server, files, command_line):
    """Returns a script that gives the first card's interface an address, and boots the files of a server as soon as they are available.

    files: the URL paths of the kernel and of the initial RAM disk on the server.
    """
    kernel, initramfs = (f"http://{server}/{file}" for file in files)
    return "\n".join((
        "#!ipxe", "ifopen net0", f"set net0/ip {address}", "set net0/netmask 255.255.255.0",
        # If the last command of the script fails, the script exits, and the guest stops.
        ":kernel", f"kernel {kernel} {command_line} || goto kernel",
        ":initramfs", f"initrd {initramfs} || goto initramfs",
        "ifstat", "boot", ""))
