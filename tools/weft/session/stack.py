# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Selects the RDMA stack of a guest: Debian's, which is in the guest's image, or weft's own modules, which are copied to the guest."""
import dataclasses
import lzma
import pathlib
import re
import subprocess
import tempfile

from lab import cache, image
from lab.errors import LabError

LINUX, WEFT = "linux", "weft"
STOCK = "stock"     # Debian's kernel
IPOIB = "ib0"       # the interface that has no carrier without a subnet manager
NAMES = (LINUX, WEFT)
# Debian's driver of each model.
IN_TREE = {"mlx4": "mlx4_ib", "mlx5": "mlx5_ib", "mthca": "ib_mthca"}
# Modules below the driver and above it, in the order of their dependencies.
BELOW = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_iw_cm", "weft_rdma_cm", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_rdma_ucm", "weft_netlink")
ABOVE = {"mlx4": ("weft_ipoib",), "mthca": ("weft_ipoib",), "amso1100": ()}


@dataclasses.dataclass(frozen=True)
class Stack:
    """Modules that a guest loads for its card. in_tree: names of modules in its image; own: (name, bytes) of weft's."""

    interface: str
    in_tree: tuple = ()
    own: tuple = ()

    @property
    def driver(self):
        """Returns the name of the card's driver."""
        return self.in_tree[0] if self.in_tree else self.own[len(BELOW)][0]


def default_model(settings, bare):
    """Returns the model of hosts without a lab file, or None if it is weftd's default, mlx4. settings: of their guests; bare: whether the guests load no
    driver. weft's stack and the kernels for User-Mode Linux have no driver for a ConnectX-5, and a user's own kernel may have none."""
    if bare or settings.stack != LINUX or settings.kernel != STOCK:
        return None
    return "mlx5"


def two_hosts(model):
    """Returns a lab file with two hosts with cards of that model on one switch, like weftd's default lab."""
    ports = 2 if model == "mthca" else 1
    hosts = "".join(f'[[host]]\nname = "{name}"\nmodel = "{model}"\nports = {ports}\n' for name in ("node1", "node2"))
    links = "".join(f'[[link]]\nends = ["{name}/1", "switch1"]\n' for name in ("node1", "node2"))
    return f'[[switch]]\nname = "switch1"\n{hosts}{links}'


def host_in_each_place(model, count):
    """Returns a lab file with a switch and a host in each of `count` places, p1, p2 and so on. All switches are linked to the first."""
    ports = 2 if model == "mthca" else 1
    parts = ['name = "weft"\n']
    parts += [f'[[place]]\nname = "p{number}"\n' for number in range(1, count + 1)]
    parts += [f'[[switch]]\nname = "switch{number}"\nplace = "p{number}"\nports = {max(36, count + 2)}\n' for number in range(1, count + 1)]
    parts += [f'[[host]]\nname = "node{number}"\nmodel = "{model}"\nports = {ports}\n' for number in range(1, count + 1)]
    parts += [f'[[link]]\nends = ["node{number}/1", "switch{number}"]\n' for number in range(1, count + 1)]
    parts += [f'[[link]]\nends = ["switch1", "switch{number}"]\n' for number in range(2, count + 1)]
    return "".join(parts)


def interface(model):
    """Returns the name of the card's network interface."""
    return "iw0" if model == "amso1100" else IPOIB


def in_tree_modules(model):
    """Returns the names of Debian's modules for a card, for `modprobe -a`."""
    if model not in IN_TREE:
        raise LabError(f"Debian's kernel has no driver for {model}", "--stack weft has one, and --bare loads no driver")
    return (IN_TREE[model], "ib_uverbs", "ib_umad", "ib_ipoib")


def modules_of(kernel, model):
    """Returns the names of the kernel's own modules for a card, all of which it must have."""
    names = in_tree_modules(model)
    lists = [kernel.modules / name for name in ("modules.dep", "modules.builtin")] if kernel.modules else []
    known = {image.module_name(line.partition(":")[0]) for file in lists if file.is_file() for line in file.read_text().splitlines()}
    if missing := [name for name in names if name not in known]:
        raise LabError(f"the kernel {kernel.release} has no module {missing[0]}, which --stack linux loads for {model}", "use another --card, or --stack weft")
    return names


def _find(name, release):
    """Returns the path of a module that `make modules` has built in a source tree, or DKMS for the package weft-dkms."""
    for folder in (cache.TREE / "build/modules" / release, pathlib.Path("/lib/modules") / release / "updates/dkms"):
        for path in (folder / f"{name}.ko", folder / f"{name}.ko.xz"):
            if path.is_file():
                return path
    raise LabError(f"weft's modules are not built for the kernel {release}: there is no {name}.ko",
                   f"run `make modules KDIR=…` in a source tree of weft, or install the packages weft-dkms and linux-headers-{release}")


def _without_symbols(path):
    """Returns the module without debugging information, which is nine tenths of it."""
    with tempfile.TemporaryDirectory(prefix="weft-modules-") as folder:
        module = pathlib.Path(folder) / "module.ko"
        module.write_bytes(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes())
        try:
            subprocess.run(["objcopy", "--strip-debug", module], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except FileNotFoundError:
            pass    # without binutils, the debugging information stays
        return module.read_bytes()


def weft_modules(model, release):
    """Returns (name, bytes) of each of weft's modules for a card and a kernel, in loading order."""
    if model not in ABOVE:
        raise LabError(f"weft's own stack has no driver for {model}", "--stack linux uses Linux's driver, and --bare loads no driver" if model in IN_TREE else "--bare loads no driver")
    return tuple((name, _without_symbols(_find(name, release))) for name in (*BELOW, f"weft_{model}", *ABOVE[model]))


def modprobe_configuration(modules):
    """Returns a file for modprobe.d, by which modprobe finds weft's modules under /run, and the modules that each depends on. The guest's modules.dep
    lacks them, and depmod in a guest takes seconds."""
    lines = []
    for name, contents in modules:
        # A module's section .modinfo has strings that end with a zero byte.
        depends = re.search(rb"\0depends=([\w,-]+)\0", contents)
        needs = "".join(f"modprobe -q {need} && " for need in depends[1].decode().split(",")) if depends else ""
        lines.append(f"install {name} {needs}insmod /run/{name}.ko $CMDLINE_OPTS\n")
    return "".join(lines)


def load(guest, modules):
    """Copies modules into a guest and inserts them."""
    for name, contents in modules:
        guest.put(f"/run/{name}.ko", contents)
    guest.put("/etc/modprobe.d/weft-lab.conf", modprobe_configuration(modules).encode())
    guest.insmod(*(f"/run/{name}.ko" for name, _ in modules))
