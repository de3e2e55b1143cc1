# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The Debian packages: built, judged by lintian, and installed, used and removed where there is nothing but Debian; and what DKMS makes of the modules,
in machines that boot the kernel that it made them for."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from lab import cache, debian, modules
from lab.errors import LabError

DEBS = cache.TREE / "build/packages"
SUITE, NEXT_SUITE = "bookworm", "trixie"
# What modules are tried on: a suite, the one that its kernel is from, and what that is called. The newest of those there are.
KERNELS = (
    ("bookworm", "bookworm", r"linux-image-(6\.1\.\d[^-]*-\d+-amd64)"),
    ("trixie", "trixie", r"linux-image-(6\.12\.\d[^-]*-amd64)"),
    ("trixie", "trixie-backports", r"linux-image-(\d+\.\d+\.\d[^-]*-amd64)"),
)
# Without which /usr/bin/weft would not be the product.
MUST_HAVE = (
    "./usr/bin/weft", "./usr/bin/weftd", "./usr/lib/weft/tools/weft/session/weft-session", "./usr/lib/weft/tools/weft/web/weft-web", "./usr/lib/weft/tools/weft/web/page/app.js", "./usr/lib/weft/scripts/lab/agent/agent",
    "./usr/share/man/man1/weft.1.gz", "./usr/share/man/man1/weftd.1.gz", "./usr/share/man/man5/weft-lab.toml.5.gz", "./etc/weft/lab.toml",
    "./usr/share/bash-completion/completions/weft", "./lib/systemd/system/weftd.service",
)
# Of what others keep: the key that DKMS makes for all modules, too.
LEFT_BEHIND = re.compile(r"^/(?:proc|sys|dev|tmp|run|root)/|^/var/(?:log|cache)/|^/var/lib/(?:dpkg|systemd)/|^/var/lib/dkms/mok\.|^/etc/ld\.so\.cache$|^/etc/g(?:roup|shadow)-$")

MOST_EXPOSURE = 10      # of 100; it has 9

# What one does with it, without the source tree and without a machine. Each line must succeed.
USED = r"""
set -e
weftd --lab /etc/weft/lab.toml --check
install -d -m 710 -g weft /run/weft
setpriv --regid weft --clear-groups weftd --lab /etc/weft/lab.toml --socket-dir /run/weft --group & daemon=$!
tries=0; until weft --socket-dir /run/weft fabric show >/dev/null 2>&1; do tries=$((tries + 1)); test $tries -lt 200; sleep 0.1; done
weft --socket-dir /run/weft fabric show | grep -q node2
test "$(stat -c %a.%G /run/weft/node1.sock /run/weft/control.sock | xargs)" = "660.weft 600.weft"
weft --socket-dir /run/weft link down node1
weft topology torus --size 3x3 >/tmp/torus.toml
weft --socket-dir /run/weft lab apply /tmp/torus.toml | grep -q '^+ switch switch3-3$'
weft --socket-dir /run/weft fabric show | grep -q node9
weft --socket-dir /run/weft shutdown
wait $daemon
weft lab down 2>&1 | grep -q 'no lab is up'
weft run --kernel /none -- true 2>&1 | grep -q 'there is no kernel /none'
"""


def _deb(package):
    found = sorted(DEBS.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise LabError(f"there are {len(found)} packages {package} in {DEBS}", "see the lines above")
    return found[0]


def build():
    """Builds the packages; lintian must find no error, and what makes the product must be in them."""
    modules.make("packages", "the packages do not build")
    found = subprocess.run(["lintian", "--fail-on", "error", *sorted(DEBS.glob("*.deb"))], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise LabError(f"lintian finds errors:\n{found.stdout}{found.stderr}")
    contents = set(re.findall(r"(\./\S+)$", cache.tool("dpkg-deb", "-c", _deb("weft")), re.MULTILINE))
    if missing := [path for path in MUST_HAVE if path not in contents]:
        raise LabError(f"the package weft lacks {' '.join(missing)}")
    if shutil.which("systemd-analyze"):
        _judge_service()


def _judge_service():
    """What the service may do, by systemd's own measure: 0 is nothing, 100 is all that root may."""
    with tempfile.TemporaryDirectory() as folder:
        unit = shutil.copy(cache.TREE / "debian/weft.weftd.service", pathlib.Path(folder) / "weftd.service")
        found = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSURE}", unit], capture_output=True,
                               text=True, check=False)
    if found.returncode != 0:
        raise LabError(f"the service may do too much:\n{found.stdout[-2000:]}{found.stderr}")


# What a chroot gets after debootstrap, which knows no package by the names that others provide. No initramfs is made: machines have their own.
INSTALL = """
set -e
export DEBIAN_FRONTEND=noninteractive INITRD=No
apt-get -q update
apt-get -qy --no-install-recommends -t {source} install {needs}
apt-get clean
"""


def _chroot(needs, suite=SUITE, source=None):
    """A minimal Debian with packages and nothing of ours, made by debootstrap; the packages from another suite, if that is named. Kept in the cache."""
    def make(directory):
        root = directory / "root"
        mirror = debian.mirrors()[0]
        cache.tool("debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, mirror)
        (root / "etc/apt/sources.list").write_text("".join(f"deb {mirror} {name} main\n" for name in dict.fromkeys((suite, source or suite))))
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        _within(root, INSTALL.format(source=source or suite, needs=" ".join(needs)))
        (root / "whole").write_text("yes\n")
    return cache.entry("chroot", cache.key_of(suite, source, INSTALL, *needs), make, need_mib=3000, product="root/whole") / "root"


def _needs(deb):
    """The names of what a package depends on."""
    return sorted(part.split()[0] for part in cache.tool("dpkg-deb", "-f", deb, "Depends").split(","))


def _files(root):
    # Not what is mounted in it.
    listed = cache.tool("find", root, "-xdev", "-not", "-type", "d", "-printf", "/%P\n").splitlines()
    return {path for path in listed if not LEFT_BEHIND.search(path)}


def _need_root():
    if os.geteuid() != 0:
        raise LabError("a chroot can only be made by root", "run this as root")


def _within(root, command):
    """Runs a command in a chroot; returns what it prints."""
    # A namespace of its own: what it leaves running or mounted goes with it.
    return cache.tool("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                      f"mount -t proc proc {root}/proc && exec chroot {root} bash -c \"$0\"", command)


@contextlib.contextmanager
def _copy(root):
    """A root as it is, which may be written to, until it is left."""
    with tempfile.TemporaryDirectory(prefix="weft-chroot-") as folder:
        places = [pathlib.Path(folder) / name for name in ("root", "upper", "work")]
        for place in places:
            place.mkdir()
        mount, upper, work = places
        cache.tool("mount", "-t", "overlay", "-o", f"lowerdir={root},upperdir={upper},workdir={work}", "overlay", mount)
        try:
            yield mount
        finally:
            cache.tool("umount", "--lazy", mount)


def install():
    """In a bare chroot of Debian 12: installed by dpkg, used, removed with its configuration; nothing stays."""
    _need_root()
    _install(_deb("weft"), SUITE)


def _install(deb, suite):
    with _copy(_chroot(_needs(deb), suite)) as root:
        before = _files(root)
        shutil.copy(deb, root / "tmp")
        _within(root, f"dpkg -i /tmp/{deb.name}")
        _within(root, USED)
        _within(root, "dpkg --purge weft")
        if left := _files(root) - before:
            raise LabError(f"removing the package weft leaves {' '.join(sorted(left)[:10])}")
        if gone := before - _files(root):
            raise LabError(f"removing the package weft takes {' '.join(sorted(gone)[:10])} along")


def install_on_next():
    """The same on Debian 13, whose libraries are others: built there of the sources, in minutes."""
    _need_root()
    control = (cache.TREE / "debian/control").read_text()
    needs = re.findall(r"[a-z][a-z0-9+.-]+", re.sub(r"\([^)]*\)", "", re.search(r"^Build-Depends:(.*(?:\n .*)*)", control, re.MULTILINE)[1]))
    needs = sorted({need for need in needs if need != "debhelper-compat"} | {"debhelper", "make", "dpkg-dev"})
    with _copy(_chroot(needs, NEXT_SUITE)) as root, tempfile.TemporaryDirectory() as folder:
        (root / "weft").mkdir()
        archive = pathlib.Path(folder) / "tree.tar"
        cache.tool("tar", "-cf", archive, "--exclude=./build", "--exclude=./.git", "-C", cache.TREE, ".")
        cache.tool("tar", "-xf", archive, "-C", root / "weft")
        _within(root, "make -C /weft packages")
        deb = pathlib.Path(shutil.copy(next((root / "weft/build/packages").glob("weft_*.deb")), folder))
        _install(deb, NEXT_SUITE)


MODULES = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_iw_cm", "weft_rdma_cm", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_rdma_ucm", "weft_netlink", "weft_mlx4",
           "weft_ipoib")
USED_IN_MACHINES = f"""
set -e
for module in {' '.join(MODULES)}; do insmod /share/$module.ko*; done
until grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do sleep 0.1; done
ip link set ib0 up
#@ node1
ip address add 10.0.0.1/24 dev ib0
until ping -c 1 -W 1 10.0.0.2; do :; done
ping -c 3 10.0.0.2 >&2
until rping -c -a 10.0.0.2 -C 3 >&2; do sleep 0.1; done
rdma resource show qp | grep -q .
if timeout 30 rping -c -a fd00::2 -C 1 >&2; then exit 1; fi
uname -r
touch /share/done
#@ node2
ip address add 10.0.0.2/24 dev ib0
rping -s -C 3 >&2
until test -e /share/done; do sleep 0.1; done
"""
# A kernel may do without IPv6: the newest, that has no stub in its place, must not be led into tables that are not there.
WITHOUT_IPV6 = ("--append", "ipv6.disable=1")


def _chroot_with_kernel(suite, source, pattern):
    """A minimal Debian with the newest kernel of a name, its headers and DKMS; kept in the cache. Returns (root, release)."""
    with tempfile.TemporaryDirectory() as folder:
        release = debian.Apt(pathlib.Path(folder) / "apt", (source,)).newest(pattern)
    return _chroot([f"linux-image-{release}", f"linux-headers-{release}", "dkms", "g++", "make", "xz-utils"], suite, source), release


def dkms():
    """The package weft-dkms builds for Debian's kernels, by their own compilers; what it built works in machines that boot them; and removed, it leaves nothing."""
    _need_root()
    deb = _deb("weft-dkms")
    version = cache.tool("dpkg-deb", "-f", deb, "Version").strip()
    for each in KERNELS:
        lower, release = _chroot_with_kernel(*each)
        with _copy(lower) as root, tempfile.TemporaryDirectory(prefix="weft-dkms-") as share:
            before = _files(root)
            shutil.copy(deb, root / "tmp")
            _within(root, f"dpkg -i /tmp/{deb.name} && dkms install weft/{version} -k {release} && dkms status weft -k {release} | grep -q installed")
            built = root / "lib/modules" / release / "updates/dkms"
            for module in MODULES:
                shutil.copy(next(built.glob(f"{module}.ko*")), share)
            script = pathlib.Path(share, "script")
            script.write_text(USED_IN_MACHINES)
            said = cache.tool(cache.TREE / "build/bin/weft", "run", "--bare", "--kernel", lower / f"boot/vmlinuz-{release}", "--modules",
                              lower / "lib/modules" / release, "--share", share, "--timeout", "180", *(WITHOUT_IPV6 if each == KERNELS[-1] else ()), "--script", script)
            if f"node1: {release}" not in said.splitlines():
                raise LabError(f"machines with the kernel {release} said:\n{said}")
            _within(root, "dpkg --purge weft-dkms")
            if left := _files(root) - before:
                raise LabError(f"removing the package weft-dkms leaves {' '.join(sorted(left)[:10])}")
            print(f"   weft-dkms works on {release}", flush=True)
