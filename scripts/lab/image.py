# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds the images that a guest boots: a root image of Debian packages, and a small initramfs that mounts it.

The root image is ext4, read-only, shared by all guests; each has a tmpfs over it. The initramfs holds
the agent (agent/), busybox, and the stock kernel's drivers for the root disk, so that a change to
the agent costs a second and not a new root image.
"""
import gzip
import lzma
import pathlib
import shutil
import stat

from lab import cache, debian, kernels
from lab.errors import LabError

ROOT_FORMAT = 6     # incremented when the root image is built differently
ROOT_IMAGE = "root.img"
COMPRESSED_ROOT_IMAGE = "root.qcow2"    # made by scripts/ci/container/step
HERE = pathlib.Path(__file__).resolve().parent
PYVERBS_TESTS = "usr/share/rdma-core/tests"
GUEST_PACKAGES = cache.TREE / "scripts/packages/guests.list"

# Directories of the stock kernel's modules that guests use; the modules on which they depend are added.
STOCK_MODULES = (
    "kernel/drivers/infiniband", "kernel/drivers/net/ethernet/mellanox/mlx4", "kernel/drivers/virtio", "kernel/drivers/block/virtio_blk.ko",
    "kernel/drivers/char/virtio_console.ko", "kernel/drivers/char/hw_random/virtio-rng.ko", "kernel/drivers/net/virtio_net.ko",
    "kernel/drivers/net/dummy.ko", "kernel/drivers/net/macvlan.ko", "kernel/drivers/net/veth.ko", "kernel/drivers/net/tun.ko", "kernel/drivers/net/bonding",
    "kernel/drivers/net/ipvlan", "kernel/drivers/net/vxlan", "kernel/drivers/net/wireguard", "kernel/drivers/net/vrf.ko", "kernel/drivers/net/ifb.ko",
    "kernel/net/8021q", "kernel/net/bridge", "kernel/net/9p", "kernel/net/packet", "kernel/net/rds", "kernel/net/sched", "kernel/net/ipv4", "kernel/net/ipv6",
    "kernel/drivers/nvme/host", "kernel/drivers/nvme/target", "kernel/drivers/block/brd.ko", "kernel/drivers/scsi/sd_mod.ko",
    "kernel/net/netfilter/nf_tables.ko", "kernel/net/sunrpc", "kernel/fs/nfs", "kernel/fs/nfsd", "kernel/fs/9p", "kernel/fs/ext4", "kernel/fs/overlayfs",
    "kernel/crypto", "kernel/drivers/pci", "kernel/drivers/iommu", "kernel/drivers/vfio", "kernel/lib",
)
# Kernel modules in a guest's initramfs, listed in it: for every guest, for those with a shared folder, and the drivers of the cards whose driver is
# loaded early (weft.early=MODEL). mlx5_core does not sleep while it resets its card, so loading it early saves no time.
EARLY = "order-early-"
BOOT_MODULES = {
    "order": ("crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "overlay", "virtio_console"),
    "order-share": ("9p", "9pnet_virtio"),
    f"{EARLY}mlx4": ("mlx4_core",),
}


def module_closure(modules, wanted):
    """Returns the paths (relative to lib/modules/<release>) of the given modules and of all modules on which they depend, dependencies first."""
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, deps = line.partition(":")
        needs[path] = deps.split()
    chosen = {}

    def add(path):
        if path not in chosen:
            for dependency in reversed(needs[path]):
                if dependency not in chosen:
                    add(dependency)
            chosen[path] = True

    for path in needs:
        if wanted(path):
            add(path)
    return list(chosen)


def depmod(tree, release):
    """Writes the dependencies of the modules in a tree's lib/modules/RELEASE."""
    cache.tool("depmod", "-b", tree, release)


def filesystem(tree, file, label, size):
    """Creates an ext4 file system with the contents of a directory, all owned by root."""
    cache.tool("mke2fs", "-q", "-t", "ext4", "-d", tree, "-O", "^has_journal,^metadata_csum", "-m", "0", "-E", "root_owner=0:0", "-L", label, file, size)


def _make_root(directory):
    stock = kernels.find("stock")
    tree = directory / "tree"
    for path in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/lib32", "usr/libx32", "proc", "sys", "dev", "run", "tmp", "root", "share", "mnt"):
        (tree / path).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        (tree / name).symlink_to(f"usr/{name}")
    apt = debian.Apt(directory / "apt", debian.guest_suites())
    for deb in apt.download(debian.packages_in(GUEST_PACKAGES)):
        debian.unpack(deb, tree)
    shutil.rmtree(directory / "apt")
    # Keep rdma-core's own tests, which Debian ships as examples with compressed files.
    shutil.move(tree / "usr/share/doc/rdma-core/tests", tree / PYVERBS_TESTS)
    for packed in (tree / PYVERBS_TESTS).glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    for unused in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n"):
        shutil.rmtree(tree / unused, ignore_errors=True)

    # Create files that the packages' scripts would have created, as far as guests need them.
    for name in ("passwd", "group"):
        shutil.copy(tree / f"usr/share/base-passwd/{name}.master", tree / f"etc/{name}")
    for name, account in (("passwd", "tcpdump:x:100:100::/nonexistent:/usr/sbin/nologin"), ("group", "tcpdump:x:100:")):
        with open(tree / f"etc/{name}", "a") as accounts:
            accounts.write(f"{account}\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (tree / "etc/hostname").write_text("guest\n")
    for name, target in (("usr/bin/awk", "gawk"), ("usr/bin/sh", "dash")):
        link = tree / name
        if not link.exists():
            link.symlink_to(target if (link.parent / target).exists() else "busybox")
    for library in tree.glob("usr/lib/libpsm1/libpsm_infinipath.so.1.*"):   # selects one of several alternatives (update-alternatives)
        (tree / "usr/lib/x86_64-linux-gnu/libpsm_infinipath.so.1").symlink_to(f"../libpsm1/{library.name}")
    for path in tree.rglob("*"):    # the image is built by the user, who must be able to read it
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o400 == 0:
            path.chmod(stat.S_IMODE(mode) | 0o400)

    base = tree / "usr/lib/modules" / stock.release
    for path in module_closure(stock.modules, lambda path: path.startswith(STOCK_MODULES)):
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(stock.modules / path, base / path)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copyfile(stock.modules / name, base / name)
    depmod(tree, stock.release)
    filesystem(tree, directory / ROOT_IMAGE, "weft-root", "1536M")
    shutil.rmtree(tree)


def _root_key():
    return cache.key_of(ROOT_FORMAT, GUEST_PACKAGES, kernels.stock_release(), *STOCK_MODULES)


def root_image_present():
    return cache.present("guest-root", _root_key(), ROOT_IMAGE)


def root_image():
    """Returns the path of the root image; builds it first if it does not exist."""
    return cache.entry("guest-root", _root_key(), _make_root, need_mib=2500, product=ROOT_IMAGE) / ROOT_IMAGE


def root_disk():
    """Returns the path and the format of the root image for QEMU. A container image has only a compressed one."""
    if cache.present("guest-root", _root_key(), COMPRESSED_ROOT_IMAGE):
        return cache.root() / f"guest-root-{_root_key()}" / COMPRESSED_ROOT_IMAGE, "qcow2"
    return root_image(), "raw"


ROOT_TREE = "tree"
TREE_IS_WHOLE = "whole"     # this file is written last, when the tree is complete


def _unpack_root(directory):
    (directory / ROOT_TREE).mkdir()
    cache.tool("debugfs", "-R", f"rdump / {directory / ROOT_TREE}", root_image())
    (directory / TREE_IS_WHOLE).write_text("yes\n")


def root_tree():
    """Returns a directory with the contents of the root image, for kernels that must not wait for a disk; creates it first if it does not exist."""
    return cache.entry("guest-tree", _root_key(), _unpack_root, need_mib=2500, product=TREE_IS_WHOLE) / ROOT_TREE


def _cpio(entries):
    """Returns a newc cpio archive of (name, mode, data) entries."""
    out = bytearray()

    def member(number, name, mode, data):
        encoded = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        out.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        out.extend(bytes(-len(out) % 4))
        out.extend(data)
        out.extend(bytes(-len(out) % 4))

    for number, (name, mode, data) in enumerate(entries, 1):
        member(number, name, mode, data)
    member(0, "TRAILER!!!", 0, b"")
    return bytes(out)


def compile_agent(program):
    """Compiles process 1 of guests; returns its path."""
    cache.tool("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-o", program, HERE / "agent/agent.cpp", remedy="run scripts/setup")
    return program


def module_name(path):
    """Returns the name of a module, given its file's path."""
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def module_bytes(path):
    """Returns the contents of a module, uncompressed."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return cache.output_of("zstd", "-dcq", path, remedy="install the package zstd")
    return path.read_bytes()


def _make_initramfs(kernel):
    def make(directory):
        agent = HERE / "agent/agent"      # a package contains it as a binary
        if not agent.is_file():
            agent = compile_agent(directory / "agent")
        busybox = pathlib.Path("/bin/busybox")
        if not busybox.is_file():
            raise LabError("the package busybox-static is missing", "run scripts/setup")
        entries = [(name, stat.S_IFDIR | 0o755, b"") for name in ("bin", "dev", "proc", "sys", "lower", "over", "root", "modules")]
        entries += [("init", stat.S_IFREG | 0o755, (HERE / "agent/init").read_bytes()),
                    ("start", stat.S_IFREG | 0o755, (HERE / "agent/start").read_bytes()),
                    ("agent", stat.S_IFREG | 0o755, agent.read_bytes()),
                    ("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()),
                    ("bin/sh", stat.S_IFLNK | 0o777, b"busybox")]
        packed = set()
        for list_name, wanted in BOOT_MODULES.items():
            order = []
            for path in module_closure(kernel.modules, lambda path: module_name(path) in wanted) if kernel.modules else ():
                name = f"{module_name(path)}.ko"
                order.append(name)
                if name not in packed:
                    packed.add(name)
                    entries.append((f"modules/{name}", stat.S_IFREG | 0o644, module_bytes(kernel.modules / path)))
            entries.append((f"modules/{list_name}", stat.S_IFREG | 0o644, "".join(f"{name}\n" for name in order).encode()))
        # The kernel unpacks the archives in order, so files of the guest's own archive replace those of the others.
        given = kernel.initrd.read_bytes() if kernel.initrd else b""
        (directory / "initramfs.cpio").write_bytes(given + bytes(-len(given) % 4) + _cpio(entries))
        (directory / "agent").unlink(missing_ok=True)
    return make


def initramfs(kernel):
    """Returns the path of the initramfs for that kernel; builds it first if it does not exist."""
    parts = [HERE / "agent" / name for name in ("agent.cpp", "init", "start")]
    given = cache.key_of(kernel.initrd) if kernel.initrd else ""
    key = cache.key_of(1, kernel.release if kernel.modules else "", kernel.identity, given, HERE / "image.py", *parts)
    return cache.entry("initramfs", key, _make_initramfs(kernel), need_mib=100, product="initramfs.cpio") / "initramfs.cpio"
