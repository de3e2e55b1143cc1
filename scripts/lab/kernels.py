# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds the kernels that guests boot: Debian's stock kernel, and the test kernels of scripts/kernel/build."""
import dataclasses
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile

from lab import cache, debian
from lab.errors import LabError

VARIANTS = ("stock", "plain", "debug", "um", "um-debug")
BUILT = VARIANTS[1:]    # built by scripts/kernel/build
STOCK_FORMAT = 1
BACKPORT_FORMAT = 1
PACKAGED_FORMAT = 1
BACKPORT_SUITES = ("bookworm", "bookworm-backports")


def is_native(variant):
    """Returns whether the kernel with that name is a process of the host (User-Mode Linux), without an emulated machine."""
    return variant.startswith("um")


@dataclasses.dataclass(frozen=True)
class Kernel:
    variant: str
    release: str            # output of uname -r
    image: pathlib.Path     # the file that QEMU boots, or the program of User-Mode Linux
    kdir: pathlib.Path      # the tree for building modules
    modules: pathlib.Path | None    # the kernel's own modules (lib/modules/<release>), if it has any
    modules_disk: pathlib.Path | None = None    # an image of lib/modules, if they are not in the root image
    initrd: pathlib.Path | None = None          # an initramfs to unpack before the guest's own
    identity: str = ""                          # distinguishes kernels of the same release

    @property
    def native(self):
        return is_native(self.variant)

    @property
    def checked(self):
        """Returns True if it has KASAN, lockdep and similar checks."""
        return self.variant.endswith("debug")


def _kept_release():
    """Returns the release of a stock kernel in the cache, as the first group of a match, because a container image has a kernel and no package
    lists."""
    for modules in sorted(cache.root().glob("kernel-stock-*/lib/modules/*")):
        if cache.present("kernel-stock", cache.key_of(STOCK_FORMAT, modules.name), "vmlinux"):
            return re.fullmatch(r"(.*)", modules.name)
    return None


def _release_elsewhere():
    """Returns the release of the stock kernel on a system other than Debian 12: the one in the cache, or Debian 12's newest. Its modules cannot be built
    there."""
    if kept := _kept_release():
        return kept[1]
    with tempfile.TemporaryDirectory(prefix="weft-apt-") as folder:
        return debian.Apt(pathlib.Path(folder) / "apt", debian.guest_suites()).newest(r"linux-image-(\d+\.\d+\.\d+-\d+-amd64)")


def stock_release():
    """Returns the release of the stock kernel: on Debian 12, the one whose headers are installed, for which modules can be built."""
    if debian.guest_suites():
        return _release_elsewhere()
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64"],
                          capture_output=True, text=True, check=False)
    found = re.search(r"linux-headers-(\S+-amd64)", done.stdout)
    if not found and not (cache.TREE / "Kbuild").is_file():
        # The package of weft builds no modules, so Debian's newest kernel is sufficient.
        done = subprocess.run(["apt-cache", "depends", "--important", "linux-image-amd64"], capture_output=True, text=True, check=False)
        found = re.search(r"linux-image-(\S+-amd64)", done.stdout) or _kept_release()
        if not found:
            raise LabError("apt knows no package linux-image-amd64", "run apt-get update")
    if not found:
        raise LabError("the package linux-headers-amd64 is missing", "run scripts/setup")
    return found[1]


def _unpacked_vmlinux(bzimage):
    """Returns the ELF image inside a bzImage that is compressed with xz, as Debian's is (Linux x86 boot protocol, payload_offset)."""
    data = bzimage.read_bytes()
    setup_sectors = data[0x1F1] or 4
    offset = int.from_bytes(data[0x248:0x24C], "little") + (setup_sectors + 1) * 512
    length = int.from_bytes(data[0x24C:0x250], "little")
    payload = data[offset:offset + length]
    if not payload.startswith(b"\xfd7zXZ\x00"):
        raise LabError(f"{bzimage} is not compressed with xz", "the unpacking in scripts/lab/kernels.py must learn its format")
    image = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
    if not image.startswith(b"\x7fELF"):
        raise LabError(f"{bzimage} contains no ELF image", "the package may be damaged")
    return image


def _make_stock(directory):
    release = stock_release()
    apt = debian.Apt(directory / "apt", debian.guest_suites())
    deb = apt.download_alone(f"linux-image-{release}")
    debian.unpack(deb, directory)
    (directory / "vmlinux").write_bytes(_unpacked_vmlinux(directory / f"boot/vmlinuz-{release}"))
    cache.tool("depmod", "-b", directory, release)
    cache.tool("rm", "-r", directory / "apt", directory / f"boot/vmlinuz-{release}", directory / "usr")


def _stock():
    release = stock_release()
    directory = cache.entry("kernel-stock", cache.key_of(STOCK_FORMAT, release), _make_stock, need_mib=1200, product="vmlinux")
    return Kernel("stock", release, directory / "vmlinux", pathlib.Path(f"/usr/src/linux-headers-{release}"),
                  directory / "lib/modules" / release)


def _make_stock_bzimage(directory):
    release = stock_release()
    deb = debian.Apt(directory / "apt", debian.guest_suites()).download_alone(f"linux-image-{release}")
    debian.unpack(deb, directory, f"./boot/vmlinuz-{release}")
    (directory / f"boot/vmlinuz-{release}").rename(directory / "bzImage")
    cache.tool("rm", "-r", directory / "apt", directory / "boot")


def bzimage(kernel):
    """Returns the file of a kernel that boot loaders load."""
    if kernel.variant != "stock":
        return kernel.kdir / "bzImage"
    return cache.entry("stock-bzimage", cache.key_of(STOCK_FORMAT, kernel.release), _make_stock_bzimage, need_mib=200, product="bzImage") / "bzImage"


def _built(variant, build):
    script = cache.TREE / "scripts/kernel/build"
    done = subprocess.run([script, variant] + ([] if build else ["--path"]), stdout=subprocess.PIPE,
                          stderr=None if build else subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        if build:
            raise LabError(f"the {variant} kernel could not be built", "see the lines above")
        raise LabError(f"the {variant} kernel is not built yet", f"run scripts/kernel/build {variant}")
    directory = pathlib.Path(done.stdout.strip())
    release = directory / "include/config/kernel.release"
    if not (directory / "vmlinux").is_file() or not release.is_file():
        raise LabError(f"{directory} is not a complete kernel tree", "remove it and run this again")
    # The unpacked kernel boots sooner, through its PVH entry. But with KASAN, that entry runs instrumented code before KASAN is
    # initialised, and crashes.
    bootable = directory / ("bzImage" if variant == "debug" else "vmlinux")
    release = release.read_text().strip()
    own = directory / "lib/modules" / release
    return Kernel(variant, release, bootable, directory, own if own.is_dir() else None)


def _make_backport_headers(directory):
    apt = debian.Apt(directory / "apt", BACKPORT_SUITES)
    release = apt.newest(r"linux-headers-(6\.12\.[^-]+)-amd64")
    for package in (f"linux-headers-{release}-amd64", f"linux-headers-{release}-common", f"linux-kbuild-{release}"):
        debian.unpack(apt.download_alone(package), directory)
    tree = directory / f"usr/src/linux-headers-{release}-amd64"
    # The tree refers to the package of the common headers by the path where that package would have been installed.
    (tree / "Makefile").write_text(f"include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-{release}-common/Makefile\n")
    (directory / "tree").symlink_to(tree.relative_to(directory))
    cache.tool("rm", "-r", directory / "apt", directory / "usr/share", directory / "lib")


def packaged(suite, pattern):
    """Returns (bzImage, directory of its modules) of the newest kernel whose package in a suite of Debian matches a pattern, as in Apt.newest(). Kept in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        apt = debian.Apt(pathlib.Path(folder) / "apt", (suite,))
        release = apt.newest(pattern)

        def make(directory):
            # Up to Linux 6.16, one package has both the image and the modules.
            parts = [f"linux-{part}-{release}" for part in ("binary", "modules")]
            for package in parts if apt.has(parts[0]) else (f"linux-image-{release}",):
                debian.unpack(apt.download_alone(package), directory)
            modules = next(directory.glob("**/lib/modules"))
            if modules.parent.parent != directory:
                modules.parent.rename(directory / "lib")
            next(path for path in directory.rglob("vmlinuz*") if path.is_file()).rename(directory / "bzImage")
            cache.tool("depmod", "-b", directory, release)

        entry = cache.entry("kernel-packaged", cache.key_of(PACKAGED_FORMAT, release), make, need_mib=1500, product="bzImage")
    return entry / "bzImage", entry / "lib/modules" / release


def backport_headers():
    """Returns a tree with the 6.12 headers of Debian's backports; modules must compile against it, but it is not booted."""
    key = cache.key_of(BACKPORT_FORMAT, *BACKPORT_SUITES)
    return cache.entry("headers-6.12", key, _make_backport_headers, need_mib=300, product="tree/.config") / "tree"


def find(variant, build=True):
    """Returns the kernel of that variant; builds or downloads it first if it is not in the cache (and build is true)."""
    if variant == "stock":
        return _stock()
    if variant in BUILT:
        return _built(variant, build)
    raise LabError(f"there is no kernel '{variant}'", f"choose one of {', '.join(VARIANTS)}")


def main():
    """Prints the KDIR of a variant, for a Makefile."""
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m lab.kernels VARIANT")
    print(find(sys.argv[1]).kdir)


if __name__ == "__main__":
    main()
