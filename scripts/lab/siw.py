# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds siw, Linux's software iWARP, from Debian's unmodified kernel source, because Debian's kernel is configured without it."""
import os

from lab import cache, kernels

FORMAT = 1
SOURCE = "linux-source-6.1"
TARBALL = f"/usr/src/{SOURCE}.tar.xz"
FOLDER = "drivers/infiniband/sw/siw"
MODULE = "siw.ko"


def _source_version():
    """The version of the package of the source. It may differ from the headers': after an update Debian's archive has the new source some
    days before the signed kernel. The module is then built like any other from outside the kernel's tree."""
    return cache.tool("dpkg-query", "-W", "-f", "${Version}", SOURCE, remedy="run scripts/setup")


def _make(kdir):
    def make(directory):
        cache.tool("tar", "-x", "--strip-components=4", "-C", directory, "-f", TARBALL, f"{SOURCE}/{FOLDER}", remedy="run scripts/setup")
        source = directory / "siw"
        cache.tool("make", "-C", kdir, f"M={source}", f"-j{os.cpu_count()}", "CONFIG_RDMA_SIW=m", "modules")
        cache.tool("strip", "--strip-debug", "-o", directory / MODULE, source / MODULE)
        cache.tool("rm", "-r", source)
    return make


def module():
    """Returns siw.ko for the stock kernel, as bytes; builds it first if it is not in the cache."""
    stock = kernels.find("stock")
    key = cache.key_of(FORMAT, stock.release, _source_version())
    return (cache.entry("siw", key, _make(stock.kdir), need_mib=100, product=MODULE) / MODULE).read_bytes()


def begin(guest, address):
    """Gives a guest of the stock kernel an address on its eth0, and siw0 on that interface, for programs and the RDMA CM."""
    guest.put("/tmp/siw.ko", module())
    guest.run("modprobe -a virtio_net ib_uverbs rdma_ucm libcrc32c && insmod /tmp/siw.ko && "
              f"ip address add {address} dev eth0 && ip link set eth0 up && rdma link add siw0 type siw netdev eth0")
