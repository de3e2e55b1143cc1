# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds a stock QEMU with vfio-user: the system's if it is new enough, else a private copy from Debian's backports.

The private copy uses its own C library and dynamic linker, so that nothing of the system is changed.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

from lab import cache, debian
from lab.errors import LabError

MINIMUM = (10, 1)
SUITES = ("trixie", "trixie-backports")
FORMAT = 2      # incremented when the copy is created differently
KEY = cache.key_of(FORMAT, *SUITES)
PROGRAM = "usr/bin/qemu-system-x86_64"


@dataclasses.dataclass(frozen=True)
class Qemu:
    argv: tuple         # the command line, to which options are appended
    environment: dict   # additional environment variables
    version: tuple


def _version(argv, environment):
    try:
        done = subprocess.run([*argv, "--version"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **environment}, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return (0, 0)
    found = re.search(r"version (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _private(directory):
    libraries = directory / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    return Qemu((str(loader), "--library-path", str(libraries), str(directory / PROGRAM),
                 "-L", str(directory / "usr/share/qemu"), "-L", str(directory / "usr/share/seabios")),
                {"QEMU_MODULE_DIR": str(libraries / "qemu")}, MINIMUM)


def _make(directory):
    apt_directory = directory / "apt"
    apt = debian.Apt(apt_directory, SUITES)
    for path in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
        (directory / path).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (directory / name).symlink_to(f"usr/{name}")
    for deb in apt.download(["qemu-system-x86"], SUITES[-1]):
        debian.unpack(deb, directory)
    shutil.rmtree(apt_directory)
    for unused in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/include", "etc", "var"):
        shutil.rmtree(directory / unused, ignore_errors=True)
    copy = _private(directory)
    version = _version(copy.argv, copy.environment)
    if version < MINIMUM:
        raise LabError(f"the QEMU of {SUITES[-1]} is {version[0]}.{version[1]}, and vfio-user needs 10.1",
                       "point apt at a current Debian mirror")


def find():
    """Returns the QEMU to use; downloads it to the cache first if necessary."""
    system = shutil.which("qemu-system-x86_64")
    if system:
        version = _version([system], {})
        if version >= MINIMUM:
            return Qemu((system,), {}, version)
    return _private(cache.entry("qemu", KEY, _make, need_mib=700, product=PROGRAM))


def version():
    """Returns the version of find()'s QEMU, as text."""
    program = find()
    return ".".join(map(str, _version(program.argv, program.environment)))


def present():
    """Returns whether find() needs no download."""
    system = shutil.which("qemu-system-x86_64")
    if system and _version([system], {}) >= MINIMUM:
        return True
    return cache.present("qemu", KEY, PROGRAM)


def kvm_flags():
    """Returns whether the processor has KVM and the user may open the device; not whether it works."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return bool(re.search(r"^flags.*\b(vmx|svm)\b", flags, re.M)) and os.access("/dev/kvm", os.R_OK | os.W_OK)
