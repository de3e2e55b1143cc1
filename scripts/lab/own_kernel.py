# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds and checks a kernel that the user supplies for guests: a bzImage with its modules, or the tree in which it was built.

Before the boot, the guest's requirements are checked in its modules and its configuration, as far as these are available; other defects are
diagnosed from the console (why_not_up()).
"""
import dataclasses
import mmap
import os
import pathlib
import re
import shutil

from lab import cache, image
from lab.errors import LabError
from lab.kernels import Kernel

VARIANT = "own"
FORMAT = 1          # incremented when the disk of modules is created differently
KEPT_DISKS = 4      # maximum number of module disks in the cache, so that a tree that is rebuilt often does not fill it
MODULES_DISK = "modules.img"

# Module, its option, and the purpose for which guests need it.
CARRIES_A_GUEST = (
    ("virtio_pci", "VIRTIO_PCI", "its devices"),
    ("virtio_blk", "VIRTIO_BLK", "its root disk"),
    ("ext4", "EXT4_FS", "its root disk"),
    ("overlay", "OVERLAY_FS", "a writable root"),
    ("virtio_console", "VIRTIO_CONSOLE", "commands from the host"),
)
CARRIES_A_SHARE = (("9p", "9P_FS", "the shared folder"), ("9pnet_virtio", "NET_9P_VIRTIO", "the shared folder"))
# Keyed by the model of the card.
DRIVERS = {
    "mlx4": (("mlx4_core", "MLX4_CORE", "the card"), ("mlx4_ib", "MLX4_INFINIBAND", "the card")),
    "mlx5": (("mlx5_core", "MLX5_CORE", "the card"), ("mlx5_ib", "MLX5_INFINIBAND", "the card")),
    "mthca": (("ib_mthca", "INFINIBAND_MTHCA", "the card"),),
}
CARRIES_IB0 = (
    ("ib_uverbs", "INFINIBAND_USER_ACCESS", "verbs of programs"),
    ("ib_umad", "INFINIBAND_USER_MAD", "MADs of programs"),
    ("ib_ipoib", "INFINIBAND_IPOIB", "ib0"),
)
# Options without a module, which can be checked only in the configuration.
ALWAYS_BUILT_IN = (
    ("BLK_DEV_INITRD", "its first programs"), ("DEVTMPFS", "its device files"), ("TMPFS", "a writable root"), ("PCI_MSI", "the card"),
)
CONSOLE_SAYS = (
    (r"weft-guest: no root disk", "it finds no disk: CONFIG_VIRTIO_BLK and CONFIG_VIRTIO_PCI are missing, or their modules (--modules)"),
    (r"weft-guest: the root image could not be mounted", "it cannot mount its root disk: CONFIG_EXT4_FS is missing, or its module (--modules)"),
    (r"weft-guest: the overlay could not be mounted", "it cannot make its root writable: CONFIG_OVERLAY_FS is missing, or its module (--modules)"),
    (r"weft-guest: no agent port", "it has no port for commands: CONFIG_VIRTIO_CONSOLE is missing, or its module (--modules)"),
    (r"Unable to mount root fs|No working init found|No init found", "it does not start programs of its initramfs: CONFIG_BLK_DEV_INITRD, "
                                                                     "CONFIG_BINFMT_ELF or CONFIG_BINFMT_SCRIPT is missing"),
)
SAYS_NOTHING = "it prints nothing on its console: it is not an x86-64 kernel, or CONFIG_SERIAL_8250_CONSOLE is missing"


def why_not_up(console):
    """Returns the reason why a kernel did not boot, according to its console; None if the console does not show it."""
    if not console.strip():
        return SAYS_NOTHING
    return next((reason for pattern, reason in CONSOLE_SAYS if re.search(pattern, console)), None)


def release_of(bzimage):
    """Returns the release of a bzImage (Linux boot protocol, field kernel_version), or of a vmlinux, which boots sooner if it has CONFIG_PVH."""
    with bzimage.open("rb") as file:
        data = file.read(1 << 16)
        if data.startswith(b"\x7fELF"):
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                said = re.search(rb"Linux version (\d\S*)", whole)
                if said:
                    return said[1].decode()
    if data[0x202:0x206] != b"HdrS":
        raise LabError(f"{bzimage} is not an x86 kernel", "name arch/x86/boot/bzImage, or the tree in which it was built")
    start = int.from_bytes(data[0x20E:0x210], "little") + 0x200
    return data[start:data.index(b"\0", start)].decode(errors="replace").split(" ")[0]


@dataclasses.dataclass(frozen=True)
class Found:
    """The paths of a kernel and of its files."""

    image: pathlib.Path
    release: str
    modules: tuple = ()                     # (path below lib/modules/RELEASE, file)
    builtin: frozenset | None = None        # names of built-in modules; None: not known
    config: dict | None = None              # options by name; None: not known
    order: tuple = ()                       # modules.builtin and the like, which depmod reads

    def lack(self, wanted):
        """Returns the first missing (module, option, purpose) as a sentence; None if nothing is missing, or if that is unknown."""
        names = {image.module_name(path) for path, _ in self.modules}
        for module, option, purpose in wanted:
            said = (self.config or {}).get(option)
            if module in names or module in (self.builtin or ()) or said == "y":
                continue
            if said == "m":
                return f"the kernel {self.release} needs the module {module} (CONFIG_{option}=m) for {purpose}, which is missing: build the modules, or give their directory with --modules"
            if self.builtin is not None or self.config is not None:
                return f"the kernel {self.release} lacks CONFIG_{option} (module {module}), for {purpose}"
        return None

    def lack_of_options(self):
        for option, purpose in ALWAYS_BUILT_IN:
            if self.config is not None and self.config.get(option) != "y":
                return f"the kernel {self.release} lacks CONFIG_{option}, for {purpose}"
        return None


def configuration(path):
    """Returns the options in a .config file by name without CONFIG_; None if there is no such file."""
    if not path.is_file():
        return None
    return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", path.read_text(errors="replace"), re.MULTILINE))


def _builtin(path):
    return frozenset(map(image.module_name, path.read_text().split())) if path.is_file() else None


def _found_in_tree(tree):
    release = tree / "include/config/kernel.release"
    bzimage = tree / "arch/x86/boot/bzImage"
    if not release.is_file() or not bzimage.is_file():
        raise LabError(f"{tree} contains no kernel built for x86-64 (arch/x86/boot/bzImage)", "run make in it")
    order = tree / "modules.order"
    modules = []
    for line in order.read_text().split() if order.is_file() else ():
        path = pathlib.PurePath(line.removeprefix("kernel/")).with_suffix(".ko")     # named .ko or .o, depending on the kernel's version
        if not (tree / path).is_file():
            raise LabError(f"{tree} lacks the module {path}", "run make modules in it")
        modules.append((f"kernel/{path}", tree / path))
    lists = tuple(path for path in (tree / "modules.builtin", tree / "modules.builtin.modinfo") if path.is_file())
    return Found(bzimage, release.read_text().strip(), tuple(modules), _builtin(tree / "modules.builtin"), configuration(tree / ".config"), lists)


def _module_folder(given, release, bzimage):
    """Returns lib/modules/RELEASE: at or below the given path, or else where an installed kernel has it. None if it does not exist."""
    if given:
        for place in (given, given / release, given / "lib/modules" / release):
            if (place / "modules.order").is_file() or (place / "modules.dep").is_file():
                return place
        raise LabError(f"there are no modules of the kernel {release} in {given}", "give the directory that modules_install wrote to, or lib/modules/RELEASE in it")
    places = (bzimage.parent.parent / "lib/modules" / release, pathlib.Path("/lib/modules") / release)
    return next((place for place in places if (place / "modules.dep").is_file()), None)


def _found_image(bzimage, modules):
    release = release_of(bzimage)
    folder = _module_folder(modules, release, bzimage)
    config = configuration(bzimage.parent / f"config-{release}")
    if not folder:
        return Found(bzimage, release, config=config)
    files = tuple(sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.ko*") if path.is_file()))
    lists = tuple(path for path in (folder / name for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order")) if path.is_file())
    return Found(bzimage, release, files, _builtin(folder / "modules.builtin"), config, lists)


def look(path, modules=None):
    """Describes the kernel at a path: a bzImage, or the tree in which one was built; modules: the folder of its modules."""
    path = pathlib.Path(path).absolute()
    modules = pathlib.Path(modules).absolute() if modules else None
    if path.is_dir():
        found = _found_in_tree(path)
        if modules:
            return dataclasses.replace(_found_image(found.image, modules), config=found.config)
        return found
    if not path.is_file():
        raise LabError(f"there is no kernel {path}", "name a bzImage, or the tree in which one was built")
    return _found_image(path, modules)


def _make_modules(found):
    def make(directory):
        base = directory / "tree" / found.release
        linked = directory / "linked/lib/modules" / found.release
        linked.mkdir(parents=True)
        for path, file in found.modules:
            (linked / path).parent.mkdir(parents=True, exist_ok=True)
            (linked / path).symlink_to(file)
        for file in found.order:
            shutil.copyfile(file, linked / file.name)
        image.depmod(directory / "linked", found.release)
        for path in image.module_closure(linked, lambda path: path.startswith(image.STOCK_MODULES) or not path.startswith("kernel/")):
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked / path, base / path)
        base.mkdir(parents=True, exist_ok=True)
        for file in linked.glob("modules.*"):
            shutil.copyfile(file, base / file.name)
        size = sum(path.stat().st_size for path in base.rglob("*") if path.is_file())
        image.filesystem(directory / "tree", directory / MODULES_DISK, "weft-modules", f"{size * 5 // 4 + (16 << 20) >> 20}M")
        shutil.rmtree(directory / "tree")
    return make


def _identity(files):
    """Returns a key for files from names, sizes and times, because there may be thousands."""
    return cache.key_of(FORMAT, *(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))


def required(share, card):
    """Returns the requirements of a guest as (module, option, purpose). share, card: see find()."""
    return CARRIES_A_GUEST + (CARRIES_A_SHARE if share else ()) + ((*DRIVERS[card], *CARRIES_IB0) if card in DRIVERS else ())


def find(path, modules=None, initrd=None, share=False, card=None):
    """The Kernel at a path, ready to boot. modules, initrd: its modules' folder, and an initramfs to unpack before the guest's own;
    share: whether it is to have a shared folder; card: the model of a card that is to have ib0 by the kernel's own drivers. Raises LabError with
    what the kernel lacks."""
    found = look(path, modules)
    lack = found.lack_of_options() or found.lack(required(share, card))
    if lack:
        raise LabError(lack)
    identity = _identity([file for _, file in found.modules] + list(found.order))
    kernel = Kernel(VARIANT, found.release, found.image, found.image.parent, None, identity=identity)
    if found.modules:
        place = cache.entry("own-modules", identity, _make_modules(found), need_mib=1500, product=MODULES_DISK)
        os.utime(place)
        cache.keep_newest("own-modules", KEPT_DISKS)
        kernel = dataclasses.replace(kernel, modules=place / "linked/lib/modules" / found.release, modules_disk=place / MODULES_DISK)
    if initrd:
        kernel = dataclasses.replace(kernel, initrd=pathlib.Path(initrd).absolute())
    return kernel
