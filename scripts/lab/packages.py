# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Builds the Debian packages, checks them with lintian, and installs, uses and removes them on a minimal Debian. Guests then boot the kernels for
which DKMS has built the modules, and load the modules."""
import contextlib
import gzip
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
# On a busy host a guest may need more than the three seconds after which Linux gives up the resolution of an address.
PING = "for try in {1..10}; do ping -c 1 10.1.0.2 && exit; done; exit 1"
# The kernels with which modules are tested: (suite, suite of the kernel, name). The newest ones that exist.
KERNELS = (
    ("bookworm", "bookworm", r"linux-image-(6\.1\.\d[^-]*-\d+-amd64)"),
    ("trixie", "trixie", r"linux-image-(6\.12\.\d[^-]*-amd64)"),
    ("trixie", "trixie-backports", r"linux-image-(\d+\.\d+\.\d[^-]*-amd64)"),
)
# Files without which the package would not work.
MUST_HAVE = (
    "./usr/bin/weft", "./usr/bin/weftd", "./usr/lib/weft/tools/weft/session/weft-session", "./usr/lib/weft/tools/weft/web/weft-web", "./usr/lib/weft/tools/weft/web/page/app.js", "./usr/lib/weft/scripts/lab/agent/agent",
    "./usr/share/man/man1/weft.1.gz", "./usr/share/man/man1/weftd.1.gz", "./usr/share/man/man5/weft-lab.toml.5.gz", "./etc/weft/lab.toml",
    "./usr/share/bash-completion/completions/weft", "./lib/systemd/system/weftd.service",
)
# Directories that the DKMS source must not contain.
NOT_FOR_USERS = {"tests", "bench", "fuzz", "sim", "soft", "example"}
# Files that may remain after a package has been removed, because other packages own them, such as DKMS's key for all modules.
LEFT_BEHIND = re.compile(r"^/(?:proc|sys|dev|tmp|run|root)/|^/var/(?:log|cache)/|^/var/lib/(?:dpkg|systemd)/|^/var/lib/dkms/mok\.|^/etc/ld\.so\.cache$|^/etc/g(?:roup|shadow)-$")

MOST_EXPOSURE = 10      # of 100 packages; weft has 9

TESTS = cache.TREE / "debian/tests"
NOBODY = "65534"


def deb_of(package):
    found = sorted(DEBS.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise LabError(f"there are {len(found)} packages {package} in {DEBS}", "`make packages` builds one")
    return found[0]


def build():
    """Builds the packages; checks that lintian finds no error, and that the required files are in them."""
    modules.make("packages", "the packages do not build")
    found = subprocess.run(["lintian", "--fail-on", "error", *sorted(DEBS.glob("*.deb"))], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise LabError(f"lintian finds errors:\n{found.stdout}{found.stderr}")
    contents = set(re.findall(r"(\./\S+)$", cache.tool("dpkg-deb", "-c", deb_of("weft")), re.MULTILINE))
    if missing := [path for path in MUST_HAVE if path not in contents]:
        raise LabError(f"the package weft lacks {' '.join(missing)}")
    _compare_versions()
    _check_dkms_source()
    if shutil.which("systemd-analyze"):
        _check_service_sandbox()


def dkms_complaints(source):
    """Returns what the DKMS source of a package contains that users need not build: tests, examples, and modules that dkms.conf does not install."""
    paths = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_dir())
    found = [f"{path} is not for users" for path in paths if path.rpartition("/")[2] in NOT_FOR_USERS]
    installed = set(re.findall(r'^BUILT_MODULE_NAME\[\d+\]="(\w+)"', (source / "dkms.conf").read_text(), re.MULTILINE))
    built = {name for path in source.rglob("Kbuild") for name in re.findall(r"^obj-m \+= (\w+)\.o", path.read_text(), re.MULTILINE)}
    return found + [f"{name} is either built or installed, not both" for name in sorted(installed ^ built)]


def _check_dkms_source():
    """Raises an exception if DKMS would build modules on users' hosts that the package does not install."""
    with tempfile.TemporaryDirectory() as folder:
        cache.tool("dpkg-deb", "-x", deb_of("weft-dkms"), folder)
        if found := dkms_complaints(next(pathlib.Path(folder).glob("usr/src/weft-*"))):
            raise LabError(f"the package weft-dkms is wrong: {'; '.join(found[:10])}")


def _compare_versions():
    """Raises an exception unless every version in the packages is that of debian/changelog."""
    version, date = (cache.tool(cache.TREE / "scripts/make/version", *words).strip() for words in ((), ("--date",)))
    with tempfile.TemporaryDirectory() as folder:
        said = {}
        for package in ("weft", "weft-dkms"):
            cache.tool("dpkg-deb", "-x", deb_of(package), folder)
            said[package] = cache.tool("dpkg-deb", "-f", deb_of(package), "Version").strip()
        root = pathlib.Path(folder)
        for program in ("weft", "weftd"):
            said[program] = cache.tool(root / "usr/bin" / program, "--version").strip().removeprefix(f"{program} ")
        for page in root.glob("usr/share/man/man?/*.gz"):
            heading = re.search(r'^\.TH .* "([0-9-]*)" "weft ([0-9.]*)" ', gzip.decompress(page.read_bytes()).decode(), re.MULTILINE)
            said[page.stem] = heading[2] if heading and heading[1] == date else f"{heading and heading[0]}"
        sources, metadata = next(root.glob("usr/src/weft-*")), next(root.glob("usr/lib/python3/dist-packages/weft-*.dist-info/METADATA"))
        said["the sources' directory"] = sources.name.removeprefix("weft-")
        said["dkms.conf"] = re.search(r'^PACKAGE_VERSION="(.*)"$', (sources / "dkms.conf").read_text(), re.MULTILINE)[1]
        said["the modules"] = cache.tool(sources / "scripts/make/version").strip()
        said["Python"] = re.search(r"^Version: (.*)$", metadata.read_text(), re.MULTILINE)[1]
    if others := [f"{what}: {text}" for what, text in said.items() if text != version]:
        raise LabError(f"the version is {version}, but {', '.join(others)} have another one")


def _check_service_sandbox():
    """Checks the exposure of the service according to `systemd-analyze security`: 0 means no access, 100 means all rights of root."""
    with tempfile.TemporaryDirectory() as folder:
        unit = shutil.copy(cache.TREE / "debian/weft.weftd.service", pathlib.Path(folder) / "weftd.service")
        found = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSURE}", unit], capture_output=True,
                               text=True, check=False)
    if found.returncode != 0:
        raise LabError(f"the sandbox of the service is too permissive:\n{found.stdout[-2000:]}{found.stderr}")


# Packages that a chroot gets after debootstrap, which cannot resolve virtual packages. No initramfs is made, because guests have their own.
INSTALL = """
set -e
export DEBIAN_FRONTEND=noninteractive INITRD=No
apt-get -q update
apt-get -qy --no-install-recommends -t {source} install {needs}
apt-get clean
"""


def chroot(needs, suite=SUITE, source=None):
    """Returns a minimal Debian with packages, and without weft, made by debootstrap; the packages are from another suite, if that is given. It is
    kept in the cache."""
    def make(directory):
        root = directory / "root"
        mirror = debian.mirrors()[0]
        cache.tool("debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, mirror)
        (root / "etc/apt/sources.list").write_text("".join(f"deb {mirror} {name} main\n" for name in dict.fromkeys((suite, source or suite))))
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        within(root, INSTALL.format(source=source or suite, needs=" ".join(needs)))
        (root / "whole").write_text("yes\n")
    return cache.entry("chroot", cache.key_of(suite, source, INSTALL, *needs), make, need_mib=3000, product="root/whole") / "root"


def _needs(deb):
    """Returns the names of a package's dependencies."""
    return sorted(part.split()[0] for part in cache.tool("dpkg-deb", "-f", deb, "Depends").split(","))


def _files(root):
    # Do not enter mounted file systems.
    listed = cache.tool("find", root, "-xdev", "-not", "-type", "d", "-printf", "/%P\n").splitlines()
    return {path for path in listed if not LEFT_BEHIND.search(path)}


def need_root():
    if os.geteuid() != 0:
        raise LabError("a chroot can only be made by root", "run this as root")


def within(root, command):
    """Runs a command in a chroot; returns its output."""
    # Use separate namespaces, so that the command's processes and mounts disappear with it.
    return cache.tool("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                      f"mount -t proc proc {root}/proc && exec chroot {root} bash -c \"$0\"", command)


@contextlib.contextmanager
def copy(root):
    """Yields a writable overlay of a root, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="weft-chroot-") as folder:
        pathlib.Path(folder).chmod(0o755)       # other users need access, too
        places = [pathlib.Path(folder) / name for name in ("root", "upper", "work")]
        for place in places:
            place.mkdir()
        mount, upper, work = places
        cache.tool("mount", "-t", "overlay", "-o", f"lowerdir={root},upperdir={upper},workdir={work}", "overlay", mount)
        try:
            yield mount
        finally:
            cache.tool("umount", "--lazy", mount)


def _autopkgtests():
    """Yields the tests of debian/tests/control as (name, packages, whether root runs it)."""
    for paragraph in re.split(r"\n\s*\n", (TESTS / "control").read_text()):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if "Tests" in fields:
            yield fields["Tests"], re.split(r",\s*", fields["Depends"]), "needs-root" in fields["Restrictions"]


def install():
    """Tests that dpkg installs the packages in a minimal chroot of Debian 12, that their autopkgtests pass, and that nothing remains after a purge."""
    need_root()
    _install(deb_of("weft"), SUITE)


def _install(deb, suite):
    tests = list(_autopkgtests())
    needs = {need for _, packages, _ in tests for need in packages} - {"weft"}
    with copy(chroot(sorted({*_needs(deb), *needs}), suite)) as root:
        before = _files(root)
        shutil.copy(deb, root / "tmp")
        shutil.copytree(TESTS, root / "tmp/tests")
        within(root, f"dpkg -i /tmp/{deb.name}")
        for name, _, as_root in tests:
            user = "" if as_root else f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs "
            try:
                # Each line is printed before it runs, so that the last one shows what has failed.
                within(root, f"cd /tmp/tests && {user}sh -x ./{name}")
            except LabError as error:
                raise LabError(f"debian/tests/{name} fails in {suite}: {error}") from None
        # A removed package leaves its configuration, state and group, and uses them again when it is reinstalled; a purge removes them.
        within(root, f"set -e; echo '# mine' >>/etc/weft/lab.toml; dpkg --remove weft; getent group weft; test -d /var/lib/weft; dpkg -i /tmp/{deb.name}; "
                      "grep -q mine /etc/weft/lab.toml; dpkg --purge weft; ! getent group weft")
        if left := _files(root) - before:
            raise LabError(f"removing the package weft leaves {' '.join(sorted(left)[:10])}")
        if gone := before - _files(root):
            raise LabError(f"removing the package weft also removes {' '.join(sorted(gone)[:10])}")


def _build_needs():
    """Returns the build dependencies of the packages."""
    control = (cache.TREE / "debian/control").read_text()
    needs = re.findall(r"[a-z][a-z0-9+.-]+", re.sub(r"\([^)]*\)", "", re.search(r"^Build-Depends:(.*(?:\n .*)*)", control, re.MULTILINE)[1]))
    return sorted({need for need in needs if need != "debhelper-compat"} | {"debhelper", "make", "dpkg-dev", "xz-utils"})


def _unpacked(archive, directory):
    """Returns the source tree from an archive of `make dist`, unpacked in a directory."""
    cache.tool("tar", "-xf", archive, "-C", directory)
    return pathlib.Path(directory) / archive.name.removesuffix(".tar.xz")


def _dist(tree=cache.TREE):
    """Returns the archive that `make dist` writes in a tree."""
    return pathlib.Path(_in_archive(tree, "scripts/make/dist").splitlines()[-1])


def _in_archive(tree, *words, **environment):
    """Runs a program in an unpacked archive, isolated from any git directory above it and from another make; returns its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MAKE", "MFLAGS"))}
    return cache.tool(*words, cwd=tree, env={**kept, "GIT_CEILING_DIRECTORIES": str(tree.parent), **environment})


def dist():
    """Tests that the archive of the sources is configured without git, and that another user's clone with other time stamps makes an identical archive."""
    with tempfile.TemporaryDirectory(prefix="weft-dist-") as folder:
        archive = _dist()
        tree = _unpacked(archive, folder)
        if any((tree / name).exists() for name in (".git", "build")):
            raise LabError(f"{archive} contains files that are not sources")
        _in_archive(tree, "make", "build/tools/build.ninja")
        _in_archive(tree, "sh", "-c", "find . -type f -exec touch {} + && chmod -R go= . && git init -q && git add .")
        other = _dist(tree)
        if archive.read_bytes() != other.read_bytes():
            raise LabError(f"`make dist` in {cache.TREE} and in a clone with other times and modes made two different {archive.name}")


def dist_builds():
    """Packages that are built from the archive in another directory, without git and without cached objects, are identical to those of this tree."""
    build()
    ours = {deb.name: deb.read_bytes() for deb in DEBS.glob("*.deb")}
    with tempfile.TemporaryDirectory(prefix="weft-dist-") as folder:
        tree = _unpacked(_dist(), folder)
        _in_archive(tree, "scripts/check")
        # Do not use ccache, because an object from the cache would be identical in any case.
        _in_archive(tree, "sh", "-c", "umask 077 && make packages", CCACHE_DISABLE="1", TZ="Asia/Tokyo")
        theirs = {deb.name: deb.read_bytes() for deb in (tree / "build/packages").glob("*.deb")}
    if ours != theirs:
        different = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        raise LabError(f"{' '.join(different)} built from the archive differ from those of this tree")


def install_on_next():
    """The same on Debian 13, which has other libraries: the packages are built there from the archive of the sources."""
    need_root()
    with copy(chroot(_build_needs(), NEXT_SUITE)) as root, tempfile.TemporaryDirectory() as folder:
        tree = _unpacked(_dist(), root / "tmp")
        within(root, f"make -C /tmp/{tree.name} packages")
        deb = pathlib.Path(shutil.copy(next((tree / "build/packages").glob("weft_*.deb")), folder))
        _install(deb, NEXT_SUITE)
        _run_guests(deb, NEXT_SUITE)


def _run_guests(deb, suite):
    """Runs a lab of two guests with a package in a Debian that has nothing else of weft. Its QEMU, kernel and image are fetched."""
    with copy(chroot(sorted(_needs(deb)), suite)) as root:
        shutil.copy(deb, root / "tmp")
        ran = within(root, f"dpkg -i /tmp/{deb.name} && weft run --on node1 -- '{PING}'")
        if " 0% packet loss" not in ran:
            raise LabError(f"no ping between guests in {suite}:\n{ran[-2000:]}")


MODULES = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_iw_cm", "weft_rdma_cm", "weft_sysfs", "weft_uverbs", "weft_umad", "weft_rdma_ucm", "weft_netlink", "weft_mlx4",
           "weft_ipoib")
USED_IN_GUESTS = f"""
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
# A kernel may be configured without IPv6. The newest ones have no stub for it, and must not access tables that do not exist.
WITHOUT_IPV6 = ("--append", "ipv6.disable=1")


def _chroot_with_kernel(suite, source, pattern):
    """Returns (root, release) of a minimal Debian with the newest kernel of a name, its headers and DKMS; kept in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        release = debian.Apt(pathlib.Path(folder) / "apt", (source,)).newest(pattern)
    return chroot([f"linux-image-{release}", f"linux-headers-{release}", "dkms", "g++", "make", "xz-utils"], suite, source), release


def dkms():
    """The package weft-dkms builds its modules for Debian's kernels with their own compilers; the modules work in guests that boot these kernels; and
    after its removal, nothing remains."""
    need_root()
    deb = deb_of("weft-dkms")
    version = cache.tool("dpkg-deb", "-f", deb, "Version").strip()
    for each in KERNELS:
        lower, release = _chroot_with_kernel(*each)
        with copy(lower) as root, tempfile.TemporaryDirectory(prefix="weft-dkms-") as share:
            before = _files(root)
            shutil.copy(deb, root / "tmp")
            within(root, f"dpkg -i /tmp/{deb.name} && dkms install weft/{version} -k {release} && dkms status weft -k {release} | grep -q installed")
            built = root / "lib/modules" / release / "updates/dkms"
            for module in MODULES:
                shutil.copy(next(built.glob(f"{module}.ko*")), share)
            script = pathlib.Path(share, "script")
            script.write_text(USED_IN_GUESTS)
            said = cache.tool(cache.TREE / "build/bin/weft", "run", "--bare", "--kernel", lower / f"boot/vmlinuz-{release}", "--modules",
                              lower / "lib/modules" / release, "--share", share, "--timeout", "180", *(WITHOUT_IPV6 if each == KERNELS[-1] else ()), "--script", script)
            if f"node1: {release}" not in said.splitlines():
                raise LabError(f"guests with the kernel {release} reported:\n{said}")
            within(root, "dpkg --purge weft-dkms")
            if left := _files(root) - before:
                raise LabError(f"removing the package weft-dkms leaves {' '.join(sorted(left)[:10])}")
            print(f"   weft-dkms works on {release}", flush=True)
