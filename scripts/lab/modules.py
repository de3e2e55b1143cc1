# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""weft's kernel modules as built for one kernel: where they are, and in which order they are loaded."""
import os
import pathlib
import re
import subprocess

from lab import cache
from lab.errors import LabError

ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}


def directory(kernel):
    """Where `make modules` puts the modules for that kernel."""
    return cache.TREE / "build/modules" / kernel.release


def make(target, complaint, *variables):
    """Runs make for a target of the tree, with all CPUs; its output goes to the terminal."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", cache.TREE, "--no-print-directory", f"-j{os.cpu_count()}", target, *variables],
                          stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise LabError(complaint, "see the lines above")


def shipped():
    """The names of the modules in the package weft-dkms."""
    return re.findall(r'^BUILT_MODULE_NAME\[\d+\]="(\w+)"$', (cache.TREE / "debian/weft-dkms.dkms").read_text(), re.MULTILINE)


def build(kdir, names=()):
    """Builds all modules, or those with these names, against that kernel tree; the build's output goes to the terminal."""
    make("modules", f"the modules do not build against {kdir}", f"KDIR={kdir}", *([f"MODULES={' '.join(names)}"] if names else []))
    # The directory has the name that scripts/make/kbuild/run gives it. User-Mode Linux does not have all modules.
    release = re.search(r'"(.*)"', (kdir / "include/generated/utsrelease.h").read_text())[1]
    built = [path for path in (cache.TREE / "build/modules" / release / f"{name}.ko" for name in names or shipped()) if path.exists()]
    version = cache.tool(cache.TREE / "scripts/make/version").strip()
    if others := [path.name for path in built if _field(path, "version") != version]:
        raise LabError(f"{' '.join(others)} for {release} do not have the version {version}")
    if not built:
        raise LabError(f"no module of the package was built for {release}")


def check_locks(kdir):
    """Lets clang check the lock annotations of the modules built against that tree."""
    make("check-locks", "clang reports violations of lock annotations", f"KDIR={kdir}")


def _field(path, name):
    return cache.tool("modinfo", "-F", name, path, env=ENVIRONMENT).strip()


def in_order(paths):
    """The modules of the list, each after those of the list that it depends on."""
    by_name = {path.stem: path for path in paths}
    needs = {name: [need for need in _field(path, "depends").split(",") if need in by_name] for name, path in by_name.items()}
    ordered = []

    def add(name):
        if by_name[name] not in ordered:
            for need in needs[name]:
                add(need)
            ordered.append(by_name[name])

    for name in sorted(by_name):
        add(name)
    return ordered


def all_of(kernel, tests):
    """The modules built for that kernel in loading order: the suite's own, or (tests) the KUnit suites."""
    folder = directory(kernel)
    paths = [path for path in folder.glob("weft_*.ko") if path.stem.endswith("_test") == tests]
    return in_order(paths)


def needed_by(path, folder):
    """weft's modules that this one needs, in loading order, itself not included."""
    found = []

    def add(name):
        candidate = folder / f"{name}.ko"
        if candidate.is_file():
            for need in _field(candidate, "depends").split(","):
                add(need)
            if candidate not in found:
                found.append(candidate)

    for name in _field(path, "depends").split(","):
        add(name)
    return found


def suite_count(path):
    """Returns the number of KUnit suites in a module: the pointers in its section .kunit_test_suites."""
    listing = cache.tool("readelf", "-SW", path)
    found = re.search(r"\s\.kunit_test_suites\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", listing)
    return int(found[1], 16) // 8 if found else 0


def is_built(kernel):
    return any(pathlib.Path(directory(kernel)).glob("weft_*.ko"))
