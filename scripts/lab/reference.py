# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Compiles the measuring code of a benchmark against the kernel's own stack. The same source is also compiled against weft's kernel stack."""
import pathlib
import re
import shutil
import subprocess

from lab import cache, reports

# Format of the kernel log line for each figure, of weft's module and of the reference.
LINE = re.compile(r"^\w+: figure (\S+) (-?\d+)$")
COUNTING = "core/kern/bench"
HEADERS = "include/kern/types.h", "include/kern/errno.h"     # for C sources: the kernel's own stack


def build(kernel, directory, component):
    """Builds DIRECTORY/reference against the kernel's headers, in a copy in which weft's headers are not visible. Returns the path of the module."""
    tree = pathlib.Path(directory) / "reference"
    for part in (component, COUNTING):
        shutil.copytree(cache.TREE / part, tree / part)
    for header in HEADERS:
        (tree / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache.TREE / header, tree / header)
    built = tree / component / "reference"
    subprocess.run(["make", "-C", kernel.kdir, f"M={built}", f"tree={tree}", "modules"], stdin=subprocess.DEVNULL, check=True)
    return built


def figures(text):
    """Returns the figures in a kernel's log by name; for repeated ones, the last."""
    lines = [LINE.match(reports.message(line)) for line in text.splitlines()]
    return {match.group(1): int(match.group(2)) for match in lines if match}
