# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds the container image of scripts/ci/container by the steps of its Containerfile in chroots, and runs it as user nobody, without a network and
read-only. Builds and runs it by podman, too, if the host has it.

podman without root needs a user namespace with many users, which a test host may not have. Therefore bubblewrap runs the image: it gives a single
user the same rights as an unprivileged container.
"""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time

from lab import cache, packages
from lab.errors import LabError
from lab.guest import contention
from lab.testing import Skip

HERE = cache.TREE / "scripts/ci/container"
MB = 10**6        # as container tools and the documents count
MOST_MB = 400
# The same restrictions as in an unprivileged `podman run`: no capability on the host, only the usual devices, no network, and a file system that is
# read-only except for /tmp.
CONFINED = ("setpriv", "--reuid", packages.NOBODY, "--regid", packages.NOBODY, "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all",
            "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv")
HOSTS = 16
# OpenSM and infiniband-diags on the nodes of a lab without guests. /tmp is the only directory that can be written.
ATTACHED = f"""
set -e
trap 'cat /tmp/*.log >&2' ERR
export OSM_TMP_DIR=/tmp OSM_CACHE_DIR=/tmp
weft topology fat-tree --hosts {HOSTS} --ports 8 --model endpoint | sed '/^.sm.$/a enabled = false' >/tmp/tree.toml
weftd --lab /tmp/tree.toml >/tmp/weftd.log 2>&1 &
until weft fabric show >/dev/null 2>&1; do kill -0 $!; sleep 0.1; done
weft attach node1 -- opensm -f /tmp/opensm.log >/dev/null 2>&1 &
until weft attach node2 -- sminfo 2>/dev/null | grep SMINFO_MASTER; do kill -0 $!; sleep 0.2; done
until weft attach node2 -- saquery NR 2>/dev/null | grep -c 'NodeDescription.*node' | grep -x {HOSTS}; do kill -0 $!; sleep 0.2; done
weft attach node2 -- ibnetdiscover | grep -c '^Ca'
weft attach leaf1 -- smpquery nodeinfo -D 0 | grep NodeType
"""


def _settings(containerfile):
    """Returns the environment of programs in the image, and the steps that build it."""
    text = containerfile.read_text()
    return dict(re.findall(r"^ENV (\w+)=(.*)$", text, re.MULTILINE)), re.findall(r"^(?:RUN|   ) /context/step (\w+)", text, re.MULTILINE)


@contextlib.contextmanager
def _stage(lower, step, *given):
    """Yields a chroot in which a step was run with the given files and directories; its product, if any, is in /out."""
    with packages.copy(lower) as root:
        context = root / "context"
        context.mkdir()
        for path in given:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, context / path.name, **({"symlinks": True} if path.is_dir() else {}))
        shutil.copy(HERE / "step", context)
        packages.within(root, f"/context/step {step} /context{' /context/out' if step == 'install' else ' /out'}")
        if step == "install":
            shutil.rmtree(context)
        yield root


def size_of(root):
    """Returns the total size of an image's regular files in bytes, as container tools count it: a file with several links counts once."""
    listed = cache.tool("find", root, "-xdev", "-type", "f", "-printf", "%i %s\n").splitlines()
    return sum(int(size) for size in dict(line.split() for line in listed).values())


def _run(root, environment, *command):
    timeout = 300 * contention()
    words = [*CONFINED, *("--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")]
    for name, value in {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", **environment}.items():
        words += ["--setenv", name, value]
    try:
        return subprocess.run([*words, "--chdir", "/", *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(command)} in the container has not ended within {timeout:.0f} s: {error.stdout} {error.stderr}") from None


def _check(root, environment):
    """A lab and OpenSM run in the image at a directory, with the rights of an unprivileged container."""
    begun = time.monotonic()
    first = _run(root, environment, "weft", "run", "--on", "node1", "--", packages.PING)
    took, load = time.monotonic() - begun, os.getloadavg()[0]
    if first.returncode != 0 or " 0% packet loss" not in first.stdout:
        raise LabError(f"no ping in the container: status {first.returncode}\n{first.stdout[-2000:]}\n{first.stderr[-2000:]}")
    if (status := _run(root, environment, "weft", "run", "--on", "node2", "--", "exit 7").returncode) != 7:
        raise LabError(f"`weft run` in the container exits with {status} although the command exits with 7")
    attached = _run(root, environment, "bash", "-c", ATTACHED)
    if attached.returncode != 0 or not re.search(rf"SMINFO_MASTER\n{HOSTS}\n{HOSTS}\nNodeType:.*Switch", attached.stdout):
        raise LabError(f"OpenSM and infiniband-diags do not work on nodes in the container: status {attached.returncode}\n{attached.stdout}\n{attached.stderr}")
    print(f"   the first ping in the container came after {took:.1f} s (load average {load:.0f})", flush=True)


def image():
    """The image is small, needs neither a network nor privileges, passes on the status of the command, and runs OpenSM and infiniband-diags on nodes."""
    packages.need_root()
    environment, steps = _settings(HERE / "Containerfile")
    if steps != ["packages", "guests", "install"]:
        raise LabError(f"the Containerfile has the steps {' '.join(steps)}, which differ from those of this test")
    # The first step only builds the packages, which have their own tests.
    deb, bare = packages.deb_of("weft"), packages.chroot(())
    with _stage(bare, "guests", deb) as guests, _stage(bare, "install", deb, guests / "out") as root:
        size = size_of(root)
        if size >= MOST_MB * MB:
            raise LabError(f"the container image has {size / MB:.1f} MB; the limit is {MOST_MB} MB")
        print(f"   the container image has {size / MB:.0f} MB", flush=True)
        _check(root, environment)


def by_podman():
    """podman builds the image by its Containerfile. The base image is made by debootstrap, because a test host may reach no registry. What podman has built is
    run as in image(), and by podman itself on hosts where it can run containers. Nothing of podman's remains."""
    packages.need_root()
    if not shutil.which("podman"):
        raise Skip("podman is not installed")
    environment, _ = _settings(HERE / "Containerfile")
    with tempfile.TemporaryDirectory(prefix="weft-podman-") as folder:
        podman = ("podman", "--root", f"{folder}/storage", "--runroot", f"{folder}/run", "--cgroup-manager", "cgroupfs")
        try:
            cache.tool("tar", "-C", packages.chroot(()), "-cf", f"{folder}/base.tar", ".")
            cache.tool(*podman, "import", f"{folder}/base.tar", "localhost/base")
            cache.tool("make", "-C", cache.TREE, "dist")
            cache.tool(*podman, "build", "--network", "host", "--isolation", "chroot", "--build-arg", "BASE=localhost/base", "-f", HERE / "Containerfile",
                       "-t", "weft", cache.TREE)
            mounted = subprocess.run([*podman, "image", "mount", "weft"], capture_output=True, text=True, check=True).stdout.strip()
            # podman's directories are closed to other users.
            with packages.copy(mounted) as root:
                _check(root, environment)
            tried = subprocess.run([*podman, "run", "--rm", "--network", "none", "localhost/base", "true"], capture_output=True, text=True, check=False)
            if tried.returncode != 0:
                print(f"   podman itself runs no container on this host: {tried.stderr.strip()}", flush=True)
            elif " 0% packet loss" not in (ran := cache.tool(*podman, "run", "--rm", "--network", "none", "weft", "weft", "run", "--on", "node1", "--",
                                                             packages.PING)):
                raise LabError(f"no ping in podman's container:\n{ran[-2000:]}")
        finally:
            # Layers of an overlay cannot be removed like files.
            subprocess.run([*podman, "system", "reset", "--force"], capture_output=True, check=False)
