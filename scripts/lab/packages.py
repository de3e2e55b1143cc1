# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The Debian packages: built, judged by lintian, and installed, used and removed where there is nothing but Debian 12."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from lab import cache, debian, modules
from lab.errors import LabError

DEBS = cache.TREE / "build/packages"
SUITE = "bookworm"
# Without which /usr/bin/weft would not be the product.
MUST_HAVE = (
    "./usr/bin/weft", "./usr/bin/weftd", "./usr/lib/weft/tools/weft/session/weft-session", "./usr/lib/weft/tools/weft/web/weft-web", "./usr/lib/weft/tools/weft/web/page/app.js", "./usr/lib/weft/scripts/lab/agent/agent",
    "./usr/share/man/man1/weft.1.gz", "./usr/share/man/man1/weftd.1.gz", "./usr/share/man/man5/weft-lab.toml.5.gz", "./etc/weft/lab.toml",
    "./usr/share/bash-completion/completions/weft", "./lib/systemd/system/weftd.service",
)
LEFT_BEHIND = re.compile(r"^/(?:proc|sys|dev|tmp|run|root)/|^/var/(?:log|cache)/|^/var/lib/(?:dpkg|systemd)/|^/etc/ld\.so\.cache$")

MOST_EXPOSURE = 10      # of 100; it has 9

# What one does with it, without the source tree and without a machine. Each line must succeed.
USED = r"""
set -e
weftd --lab /etc/weft/lab.toml --check
weftd --lab /etc/weft/lab.toml --socket-dir /run/weft & daemon=$!
tries=0; until weft --socket-dir /run/weft fabric show >/dev/null 2>&1; do tries=$((tries + 1)); test $tries -lt 200; sleep 0.1; done
weft --socket-dir /run/weft fabric show | grep -q node2
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


def _chroot(needs):
    """A Debian 12 with what its packages need and nothing of ours, made by debootstrap; kept in the cache."""
    def make(directory):
        mirror = debian.mirrors()[0]
        cache.tool("debootstrap", "--variant=minbase", f"--include={','.join(needs)}", SUITE, directory / "root", mirror)
    return cache.entry("chroot", cache.key_of(SUITE, *needs), make, need_mib=800, product="root/etc/debian_version") / "root"


def _needs(deb):
    """The names of what a package depends on."""
    return sorted(part.split()[0] for part in cache.tool("dpkg-deb", "-f", deb, "Depends").split(","))


def _files(root):
    # Not what is mounted in it.
    listed = cache.tool("find", root, "-xdev", "-not", "-type", "d", "-printf", "/%P\n").splitlines()
    return {path for path in listed if not LEFT_BEHIND.search(path)}


def install():
    """In a bare chroot: installed by dpkg, used, removed with its configuration; nothing stays."""
    if os.geteuid() != 0:
        raise LabError("a chroot can only be made by root", "run this as root")
    deb = _deb("weft")
    with tempfile.TemporaryDirectory(prefix="weft-chroot-") as folder:
        root = pathlib.Path(folder) / "root"
        cache.tool("cp", "-a", "--reflink=auto", _chroot(_needs(deb)), root)
        before = _files(root)
        shutil.copy(deb, root / "tmp")

        def within(command):
            # A namespace of its own: what it leaves running or mounted goes with it.
            return cache.tool("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                              f"mount -t proc proc {root}/proc && exec chroot {root} bash -c \"$0\"", command)

        within(f"dpkg -i /tmp/{deb.name}")
        within(USED)
        within("dpkg --purge weft")
        if left := _files(root) - before:
            raise LabError(f"removing the package weft leaves {' '.join(sorted(left)[:10])}")
        if gone := before - _files(root):
            raise LabError(f"removing the package weft takes {' '.join(sorted(gone)[:10])} along")
