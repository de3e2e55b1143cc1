# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds and checks a User-Mode Linux kernel that the user has built, for guests in virtual time: the tree of the build, or a directory with vmlinux, its
configuration and lib/modules."""
import os
import pathlib
import shutil
import subprocess

from lab import cache, image, kernels, own_kernel, uml
from lab.errors import LabError

FORMAT = 1          # incremented when the directory of modules is created differently
KEPT = 4            # maximum number of module directories in the cache
VARIANT, CHECKED = "um-own", "um-own-debug"     # the second one has KASAN; lab.kernels distinguishes them by name
# Option, its value, and the purpose for which guests need it.
NEEDED = (
    ("UML", "y", "a program of the host, instead of another architecture"),
    ("UML_TIME_TRAVEL_SUPPORT", "y", "virtual time"),
    ("BLK_DEV_INITRD", "y", "its first programs"),
    ("HOSTFS", "y", "its files"),
    ("OVERLAY_FS", "y", "a writable root"),
    ("VIRTIO_UML", "y", "the card"),
    ("UML_PCI_OVER_VIRTIO", "y", "the card"),
    ("UML_PCI_OVER_VIRTIO_DEVICE_ID", str(uml.PCI_DEVICE_ID), "the card"),
)
# Options that only some guests need.
FAILING_ALLOCATIONS = (("FAILSLAB", "y", "failing allocations"), ("FAULT_INJECTION_DEBUG_FS", "y", "failing allocations"))
LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")


def _modules_of_build(tree):
    """Returns the modules that a build has left in its tree: (path below lib/modules/RELEASE, file)."""
    result = []
    for line in (tree / "modules.order").read_text().split():
        path = pathlib.PurePath(line.removeprefix("kernel/")).with_suffix(".ko")     # named .ko or .o, depending on the kernel's version
        if not (tree / path).is_file():
            raise LabError(f"{tree} lacks the module {path}", "run make ARCH=um modules in it")
        result.append((f"kernel/{path}", tree / path))
    return result


def _make_modules(tree, release, modules):
    """Fills a directory as modules_install does, with modules that have no debugging information."""
    def make(directory):
        base = directory / "lib/modules" / release
        for path, file in modules:
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, base / path)
            try:
                subprocess.run(["objcopy", "--strip-debug", base / path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            except FileNotFoundError:
                pass    # without binutils, the debugging information stays
        for name in LISTS:
            if (tree / name).is_file():
                shutil.copyfile(tree / name, base / name)
        image.depmod(directory, release)
    return make


def _identity(tree, files):
    """Returns a key for files from names, sizes and times. A rebuild that changes no file keeps the key."""
    return cache.key_of(FORMAT, str(tree), *(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))


def look(path, needed=()):
    """Returns the Kernel in a directory. needed: options in addition to those of NEEDED. Raises LabError if something is missing."""
    tree = pathlib.Path(path).absolute()
    release = tree / "include/config/kernel.release"
    program = next((file for file in (tree / "vmlinux", tree / "linux") if file.is_file()), None)
    if not program or not release.is_file():
        raise LabError(f"{tree} contains no kernel of User-Mode Linux (vmlinux and include/config/kernel.release)", "run make ARCH=um in it; scripts/uml/build configures one")
    release = release.read_text().strip()
    config = own_kernel.configuration(tree / ".config")
    if config is None:
        raise LabError(f"{tree} has no .config", "give the directory in which the kernel was built")
    for option, value, purpose in (*NEEDED, *needed):
        if config.get(option) != value:
            raise LabError(f"the kernel {release} lacks CONFIG_{option}={value}, for {purpose}", "scripts/uml/build configures a kernel that has it")
    variant = CHECKED if config.get("KASAN") == "y" else VARIANT
    if (tree / "modules.order").is_file():
        modules = _modules_of_build(tree)
        identity = _identity(tree, [program, *(file for _, file in modules)])
        place = cache.entry("uml-modules", identity, _make_modules(tree, release, modules), need_mib=500, product=f"lib/modules/{release}/modules.dep")
        os.utime(place)
        cache.keep_newest("uml-modules", KEPT)
        own = place / "lib/modules" / release
    else:
        own = tree / "lib/modules" / release
        identity = _identity(tree, [program, *sorted(own.rglob("*.ko*"))])
    return kernels.Kernel(variant, release, program, tree, own if own.is_dir() else None, identity=identity)


def named(name, needed=()):
    """Returns the kernel with that name: a native one of lab.kernels, or the directory of one that the user has built."""
    if name not in kernels.VARIANTS:
        return look(name, needed)
    if not kernels.is_native(name):
        raise LabError(f"virtual time needs a User-Mode Linux kernel, and {name} is not one", "use --kernel um or um-debug, or the directory of a kernel built with scripts/uml/build")
    return kernels.find(name)
