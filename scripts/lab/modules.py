# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds weft's kernel modules as built for one kernel: their directory, and the order in which they are loaded."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from lab import cache
from lab.errors import LabError

ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}


def directory(kernel):
    """Returns the directory of the modules that `make modules` has built for that kernel."""
    return cache.TREE / "build/modules" / kernel.release


def make(target, complaint, *variables):
    """Runs make for a target of the tree on all CPUs; its output is printed to the terminal."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", cache.TREE, "--no-print-directory", f"-j{os.cpu_count()}", target, *variables],
                          stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise LabError(complaint, "see the lines above")


def shipped():
    """Returns the names of the modules in the package weft-dkms."""
    return re.findall(r'^BUILT_MODULE_NAME\[\d+\]="(\w+)"$', (cache.TREE / "debian/weft-dkms.dkms").read_text(), re.MULTILINE)


def build(kdir, names=()):
    """Builds all modules, or those with these names, for that kernel tree; the output is printed to the terminal."""
    make("modules", f"the modules do not build against {kdir}", f"KDIR={kdir}", *([f"MODULES={' '.join(names)}"] if names else []))
    # The name of the directory is the one that scripts/make/kbuild/run uses. Not all modules exist for User-Mode Linux.
    release = re.search(r'"(.*)"', (kdir / "include/generated/utsrelease.h").read_text())[1]
    built = [path for path in (cache.TREE / "build/modules" / release / f"{name}.ko" for name in names or shipped()) if path.exists()]
    version = cache.tool(cache.TREE / "scripts/make/version").strip()
    if others := [path.name for path in built if _field(path, "version") != version]:
        raise LabError(f"{' '.join(others)} for {release} do not have the version {version}")
    if not built:
        raise LabError(f"no module of the package was built for {release}")


def build_if_changed(kdir, names):
    """Builds the modules with these names, unless neither their sources nor they have changed since the last call. make needs 1.6 s to find that out.

    Files count as unchanged if their sizes and modification times are. Another compiler, kernel tree or variable of Kbuild counts as a change.
    """
    # The key contains the names, so that builds of different modules do not replace each other's record.
    key = hashlib.sha256(json.dumps([str(kdir), sorted(names)]).encode()).hexdigest()[:16]
    record = cache.TREE / "build/modules" / f".built-{key}.json"
    try:
        before = json.loads(record.read_text())
    except (OSError, ValueError):
        before = None
    now = _state(kdir, names)
    if before == now:
        return
    record.unlink(missing_ok=True)
    build(kdir, names)
    after = _state(kdir, names)
    # A source that was changed during the build may have been compiled before the change.
    if _without_modules(after) == _without_modules(now):
        record.write_text(json.dumps(after))


SOURCES = ("core", "hw", "ulp", "include", "scripts/make", "Kbuild", "Makefile", "debian/changelog", "debian/weft-dkms.dkms")
COMPILERS = ("gcc", "g++", "ld", "make")
KBUILD_VARIABLES = re.compile(r"(CC|CXX|LD|AR|LLVM|KBUILD|KC|CCACHE|CROSS_COMPILE|OBJ|HOSTC|HOSTLD|WEFT_)\w*|DEBUG|W|V")


def _state(kdir, names):
    """Returns what the modules with these names depend on, and the modules themselves, as a value for JSON."""
    release = re.search(r'"(.*)"', (kdir / "include/generated/utsrelease.h").read_text())[1]
    paths = [cache.TREE / name for name in SOURCES]
    paths += [kdir / name for name in (".config", "Module.symvers", "include/config/auto.conf", "include/generated/utsrelease.h")]
    paths += [cache.TREE / "build/modules" / release / f"{name}.ko" for name in names]
    paths += [pathlib.Path(found).resolve() for name in COMPILERS if (found := shutil.which(name))]
    files = {}
    while paths:
        path = paths.pop()
        if path.is_dir():
            paths += path.iterdir()
        else:
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                files[str(path)] = [status.st_size, status.st_mtime_ns]
    return {"files": files, "variables": {name: value for name, value in os.environ.items() if KBUILD_VARIABLES.fullmatch(name)}}


def _without_modules(state):
    return {**state, "files": {path: status for path, status in state["files"].items() if not path.endswith(".ko")}}


def check_locks(kdir):
    """Runs clang's check of lock annotations on the modules that were built for that tree."""
    make("check-locks", "clang reports violations of lock annotations", f"KDIR={kdir}")


def _field(path, name):
    return cache.tool("modinfo", "-F", name, path, env=ENVIRONMENT).strip()


def in_order(paths):
    """Returns the modules of the list, each after those on which it depends."""
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
    """Returns the modules that were built for that kernel in loading order: weft's own, or (tests) the KUnit suites."""
    folder = directory(kernel)
    paths = [path for path in folder.glob("weft_*.ko") if path.stem.endswith("_test") == tests]
    return in_order(paths)


def needed_by(path, folder):
    """Returns weft's modules on which this one depends, in loading order, without the module itself."""
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
