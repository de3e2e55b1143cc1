# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the lock annotations of the host half (tools/base/thread_annotations.hpp) with clang, without a build.

Annotated members are private, so only a source that includes a header with annotations can violate one. No other source is compiled.
"""
import os
import re
import subprocess
from concurrent import futures

from lab import cache, host
from lab.errors import LabError

ANNOTATED = re.compile(r"\bWEFT_(?:PT_)?GUARDED_BY\(|\bWEFT_REQUIRES\(")
TEST = re.compile(r"(?:^|/)(?:tests|testing|fuzz|bench)/")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# The build sets the version of the programs; its value is irrelevant here.
COMMAND = ("-std=c++20", "-fsyntax-only", "-Werror=thread-safety", "-pthread", '-DWEFT_VERSION="0"')
# The include directories of tools/CMakeLists.txt. The last one is for the explorer, which compiles the kernel half as a program.
INCLUDES = ("tools", "include", ".", "core", "core/kern/sim/include")


def sources(tree):
    """Yields the sources below tools that include a header with annotations, or have annotations; of tests, only those that have annotations."""
    tools = tree / "tools"
    annotated = {path.relative_to(tools).as_posix() for path in tools.rglob("*.hpp") if ANNOTATED.search(path.read_text())}
    for path in sorted(tools.rglob("*.cpp")):
        text = path.read_text()
        if ANNOTATED.search(text) or (not TEST.search(path.relative_to(tools).as_posix()) and annotated & set(INCLUDE.findall(text))):
            yield path


def complaint(path, tree=cache.TREE):
    """Returns clang's diagnostics for one source, which are empty if its locks match the annotations."""
    includes = [f"-I{tree / directory}" for directory in INCLUDES]
    done = subprocess.run([host.clang(), *COMMAND, *includes, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.stdout.strip() or f"{path}: clang ended with {done.returncode}" if done.returncode != 0 else ""


def check(tree=cache.TREE):
    """Raises an exception with all of clang's diagnostics."""
    found = list(sources(tree))
    if not found:
        raise LabError("no source of the host half has lock annotations", f"is {tree} the right directory?")
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(lambda path: complaint(path, tree), found) if text]
    if said:
        raise LabError("clang reports violations of lock annotations in the host half", "\n".join(said))
    return len(found)


if __name__ == "__main__":
    from lab.errors import reported
    with reported("check-host-locks"):
        print(f"lock annotations of the host half: {check()} sources")
