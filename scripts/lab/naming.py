# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Names in the style of Documentation/style.rst, checked by clang-tidy (.clang-tidy, tools/.clang-tidy).

Most sources include the standard library, which takes clang longer than they do. So sources are checked together: a unit includes those of
which no two define the same name. A source that has errors among others is checked again by itself.
"""
import os
import re
import subprocess
import sys
from concurrent import futures

from lab import cache
from lab.errors import LabError

TIDY = "clang-tidy-19"
COMMAND = ("--checks=-*,readability-identifier-naming", "--quiet")
# Options without those that affect code generation or warnings.
FLAGS = ("-std=gnu++20", "-ferror-limit=0", "-Wno-everything", "-pthread")
# The include directories of tools/CMakeLists.txt. The last ones are for the explorer, which compiles the kernel half as a program.
HOST_FLAGS = ("-DWEFT_VERSION=\"0\"", "-DFMT_SHARED", "-DSPDLOG_SHARED_LIB", "-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL",
              "-I{tree}/tools", "-I{tree}/include", "-I{tree}", "-I{tree}/core", "-I{tree}/core/kern/sim/include")
KERNEL_FLAGS = ("-DCONFIG_WEFT_DEBUG", "-DCONFIG_KUNIT", "-DKBUILD_MODNAME=\"weft\"", "-fno-exceptions", "-fno-rtti",
                "-I{tree}/core/kern/sim/include", "-I{tree}/include", "-I{tree}")
# The simulated kernel is a program, except for what it is linked with.
SIMULATOR = re.compile(r"core/kern/sim/(?!image/|tests/)")
# Number of sources per unit with which two cores are busy for the same time.
MOST = 150

DEFINED = tuple(re.compile(pattern, re.MULTILINE) for pattern in (
    r"^(?:template ?<.*> )?(?:static |constexpr |inline |const |extern \"C\" |\[\[\w+\]\] )*[\w:<>,&*\[\] ]+?[ *&](\w+)\(",
    r"^(?:struct|class|enum class|enum|union) (\w+)",
    r"^using (\w+) =",
    r"^(?:static |constexpr |const |inline |thread_local )+[\w:<>,&*\[\] ]+?[ *&](\w+)(?:\[.*\])? ?[={;]"))
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
# Functions that each program defines once, and that are renamed in a unit.
ONE_EACH = ("main", "LLVMFuzzerTestOneInput", "LLVMFuzzerInitialize")
NOT_A_NAME = {*ONE_EACH, "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "INSTANTIATE_TEST_SUITE_P", "MATCHER", "MATCHER_P"}
DIAGNOSTIC = re.compile(r"^(/[^:\n]+):(\d+):(\d+): (?:error|warning): (.*?) \[([\w.,-]+)\]$", re.MULTILINE)


def sources(tree):
    """Returns the C++ sources of the kernel half and of the host half."""
    kernel, host = [], []
    for top in ("core", "hw", "ulp", "tools"):
        for path in sorted((tree / top).rglob("*.cpp")):
            name = path.relative_to(tree).as_posix()
            (host if top == "tools" or SIMULATOR.match(name) else kernel).append(path)
    return kernel, host


def defined(text):
    """Returns names that a source defines, as far as its layout shows; sources with a common name cannot be in the same unit."""
    names = {name for pattern in DEFINED for name in pattern.findall(text)}
    return (names | {f"{suite}_{name}" for suite, name in TEST.findall(text)}) - NOT_A_NAME


def components(tree, paths):
    """Returns the sources of the kernel half by component: there they take no longer together, and using directives of other components would
    conflict."""
    found = {}
    for path in paths:
        found.setdefault(path.relative_to(tree).parts[:2], []).append(path)
    return list(found.values())


def units(paths):
    """Returns the sources in lists of which no two members define the same name."""
    found = []
    texts = {path: path.read_text() for path in paths}
    names = {path: defined(texts[path]) for path in paths}
    for path in sorted(paths, key=lambda path: -len(names[path])):
        for taken, members in found:
            if len(members) < MOST and not taken & names[path]:
                taken |= names[path]
                members.append(path)
                break
        else:
            found.append((set(names[path]), [path]))
    # Sources that affect the names of the following ones go last.
    return [sorted(members, key=lambda path: ("\nusing namespace " in texts[path], path)) for _, members in found]


class Found:
    """The errors that clang-tidy has reported for one unit."""

    def __init__(self, members, tidied):
        self.names = {}
        errors = set()
        inside = {os.path.realpath(path) for path in members}
        for path, line, column, text, check in DIAGNOSTIC.findall(tidied.stdout):
            path = os.path.realpath(path)
            if check.startswith("clang-diagnostic"):
                errors.add((path, f"{path}:{line}:{column}: {text}"))
            elif check.startswith("readability-identifier-naming"):
                self.names[path, int(line), int(column)] = text
        self.errors = sorted(text for _, text in errors)
        at = {path for path, _ in errors}
        if at - inside and len(members) > 1:
            # An error in a header may be caused by any of the sources.
            self.again = [members[0::2], members[1::2]]
        else:
            self.again = [[path] for path in members if os.path.realpath(path) in at]
        if not tidied.stdout and tidied.returncode != 0:
            raise LabError(f"{TIDY} ended with {tidied.returncode}", tidied.stderr.strip())


def _tidy(tree, number, members, flags):
    unit = tree / f"build/naming/{number}.cpp"
    unit.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for index, path in enumerate(members):
        for name in ONE_EACH:
            lines += [f"#undef {name}", f"#define {name} {name}_{index}"]
        lines.append(f'#include "{path}"')
    unit.write_text("\n".join(lines) + "\n")
    words = [TIDY, *COMMAND, unit, "--", *FLAGS, *(flag.format(tree=tree) for flag in flags)]
    try:
        done = subprocess.run(words, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LabError(f"{TIDY} is not installed", "run scripts/setup") from None
    return Found(members, done)


def complaints(tree=cache.TREE):
    """Returns a line for each name that violates the style of its half."""
    tree = tree.resolve()
    kernel, host = sources(tree)
    if not kernel + host:
        raise LabError("there are no sources whose names could be checked", f"is {tree} the right directory?")
    waiting = [(members, HOST_FLAGS) for members in units(host)]
    waiting += [(members, KERNEL_FLAGS) for component in components(tree, kernel) for members in units(component)]
    names, number = {}, 0
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while waiting:
            running = [(members, flags, pool.submit(_tidy, tree, number + index, members, flags)) for index, (members, flags) in enumerate(waiting)]
            number += len(waiting)
            waiting = []
            for members, flags, one in running:
                found = one.result()
                names |= found.names
                if found.errors and len(members) == 1:
                    raise LabError(f"{members[0].relative_to(tree)} does not compile, so its names cannot be checked", "\n".join(found.errors[:5]))
                waiting += [(others, flags) for others in found.again]
    units_of_ours = f"{tree}/build/naming/"
    return [f"{os.path.relpath(path, tree)}:{line}: {text}" for (path, line, _), text in sorted(names.items()) if not path.startswith(units_of_ours)]


def check(tree=cache.TREE):
    """Raises an exception with all names that violate the style of their half."""
    said = complaints(tree)
    if said:
        raise LabError("names that are not in the style of Documentation/style.rst", "\n" + "\n".join(said))


if __name__ == "__main__":
    from lab.errors import reported
    with reported("check-names"):
        check()
        print("names: in the style of Documentation/style.rst", file=sys.stdout)
