# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks with clang-tidy that names have the style of Documentation/style.rst (.clang-tidy, tools/.clang-tidy).

Most sources include headers of the standard library, and clang needs more time for these headers than for a source. Therefore many sources are
checked as one translation unit, in which no two sources define the same name. If a source has errors in such a unit, it is checked again by itself.

A wrong name is reported for the file that declares it, so a file needs no second check until it changes. The cache remembers the files that have passed.
"""
import functools
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
# The simulated kernel is compiled as a program, except for the code that is linked with it.
SIMULATOR = re.compile(r"core/kern/sim/(?!image/|tests/)")
# The directories that both halves search for headers; the last two are those of the simulated kernel and of the host half.
SEARCHED = ("include", ".", "core", "core/kern/sim/include", "tools")
# Number of sources per unit with which two cores are busy for the same time.
MOST = 150

DEFINED = tuple(re.compile(pattern, re.MULTILINE) for pattern in (
    r"^(?:template ?<.*> )?(?:static |constexpr |inline |const |extern \"C\" |\[\[\w+\]\] )*[\w:<>,&*\[\] ]+?[ *&](\w+)\(",
    r"^(?:struct|class|enum class|enum|union) (\w+)",
    r"^using (\w+) =",
    r"^(?:static |constexpr |const |inline |thread_local )+[\w:<>,&*\[\] ]+?[ *&](\w+)(?:\[.*\])? ?[={;]"))
NAMESPACE = re.compile(r"^namespace ([\w:]+)", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
# Directives that may make names of other sources ambiguous.
DIRECTIVE = re.compile(r"^using namespace (?!std::|testing;)", re.MULTILINE)
# Comments, and strings, which cannot contain comments.
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# Headers of user space for InfiniBand, which declare what the simulated kernel's headers declare differently.
USER_HEADERS = re.compile(r"^#include <(?:infiniband|rdma)/", re.MULTILINE)
# The files that have passed, one key per line, the newest last.
PASSED = "names-in-style"
MOST_PASSED = 20_000
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


def defined(text, with_namespace):
    """Returns names that a source defines, as far as its layout shows, each with the first namespace of the source, or without; sources with a common
    name cannot be in the same unit."""
    names = {name for pattern in DEFINED for name in pattern.findall(text)}
    names = (names | {f"{suite}_{name}" for suite, name in TEST.findall(text)}) - NOT_A_NAME
    inside = NAMESPACE.search(text) if with_namespace else None
    return {(inside[1] if inside else "", name) for name in names}


def families(files, paths):
    """Returns the sources of the host half in lists: the headers and the using directives of one list's members do not conflict."""
    found = {}
    for path in paths:
        name = path.relative_to(files.tree).as_posix()
        text = path.read_text()
        if name.startswith("core/"):
            kind = "simulator"
        elif any(files.tree / "include/kern" in included.parents for included in files.closure(path)):
            kind = "kernel", *name.split("/")[1:3]
        elif USER_HEADERS.search(text):
            kind = "user"
        elif name.startswith("tools/explore/") or DIRECTIVE.search(text):
            kind = name.split("/")[1:3]
        else:
            kind = "other"
        found.setdefault(str(kind), []).append(path)
    return list(found.values())


def components(tree, paths):
    """Returns the sources of the kernel half by component: there they take no longer together, and using directives of other components would
    conflict."""
    found = {}
    for path in paths:
        found.setdefault(path.relative_to(tree).parts[:2], []).append(path)
    return list(found.values())


def units(paths, with_namespaces):
    """Returns the sources in lists of which no two members define the same name, or, with namespaces, the same name in the same namespace."""
    found = []
    texts = {path: path.read_text() for path in paths}
    names = {path: defined(texts[path], with_namespaces) for path in paths}
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


class Tree:
    """The files of a source tree, what they include, and which of them have passed the check before."""

    def __init__(self, tree, sources_):
        self.tree = tree
        self.sources = sources_
        self.style = cache.key_of(*(tree / name for name in (".clang-tidy", "tools/.clang-tidy") if (tree / name).is_file()))

    @functools.cache
    def key(self, path):
        """Returns a key for what the check depends on: the file's name and code, without comments and layout."""
        code = COMMENT.sub(lambda found: found[0] if found[0][0] != "/" or "NOLINT" in found[0] else " ", path.read_text())
        return cache.key_of(self.style, path.relative_to(self.tree).as_posix(), " ".join(code.split()))

    @functools.cache
    def includes(self, path):
        """Returns the files of the tree that a file includes directly."""
        found = set()
        for name in INCLUDE.findall(path.read_text()):
            for directory in (path.parent, *(self.tree / searched for searched in SEARCHED)):
                if (included := (directory / name).resolve()).is_file():
                    if self.tree in included.parents:
                        found.add(included)
                    break
        return found

    @functools.cache
    def closure(self, source):
        """Returns a source with all files of the tree that it includes."""
        found, waiting = {source}, [source]
        while waiting:
            new = self.includes(waiting.pop()) - found
            found |= new
            waiting += new
        return found

    def unchecked(self, passed):
        """Returns the sources that have not passed, and for each header that has not passed one source that includes it."""
        chosen = [path for path in self.sources if self.key(path) not in passed]
        covered = set().union(*map(self.closure, chosen))
        for path in self.sources:
            if any(self.key(header) not in passed for header in self.closure(path) - covered):
                chosen.append(path)
                covered |= self.closure(path)
        return chosen


def _passed():
    try:
        return (cache.root() / PASSED).read_text().split()
    except FileNotFoundError:
        return []


def _remember(keys):
    with cache.locked("naming"):
        kept = [*(key for key in _passed() if key not in keys), *sorted(keys)][-MOST_PASSED:]
        new = cache.root() / f".{PASSED}"
        new.write_text("\n".join(kept) + "\n")
        new.rename(cache.root() / PASSED)


def complaints(tree=cache.TREE):
    """Returns a line for each name that violates the style of its half, in files that have changed since they passed."""
    tree = tree.resolve()
    kernel, host = sources(tree)
    if not kernel + host:
        raise LabError("there are no sources whose names could be checked", f"is {tree} the right directory?")
    files = Tree(tree, kernel + host)
    chosen = set(files.unchecked(set(_passed())))
    # Compute the keys before the check, because a file may be edited during the check.
    keys = {source: {files.key(path): str(path) for path in files.closure(source)} for source in chosen}
    kernel, host = ([path for path in half if path in chosen] for half in (kernel, host))
    waiting = [(members, HOST_FLAGS) for family in families(files, host) for members in units(family, True)]
    waiting += [(members, KERNEL_FLAGS) for component in components(tree, kernel) for members in units(component, False)]
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
                if not found.errors:
                    # Write the file at once, so that an interrupted check continues here.
                    wrong = {path for path, _, _ in names}
                    _remember({key for member in members for key, path in keys[member].items() if path not in wrong})
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
