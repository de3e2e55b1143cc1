# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Finds names in Python files that are used without a definition, or imported without a use. pyflakes finds them without running the files, whereas a
test finds an undefined name only if it executes the line."""
import pathlib
import re
import shutil
import subprocess

from lab.errors import LabError

PROGRAM = "pyflakes3"
COMPLAINT = re.compile(r"(?P<file>.+?):(?P<line>\d+):\d+:? (?P<text>.*)")
# The comment by which a line imports names for other modules.
PERMITTED = "noqa: F401"
SHEBANG = b"#!/usr/bin/env python3\n"


def _is_python(path):
    if path.suffix == ".py":
        return True
    with path.open("rb") as file:
        return file.readline() == SHEBANG


def complaints(tree):
    """Returns pyflakes' complaints about the Python files of a tree, relative to it."""
    if not shutil.which(PROGRAM):
        raise LabError(f"there is no {PROGRAM}, which checks Python files", "run scripts/setup, which installs it")
    files = [path for top in ("Documentation", "core", "debian", "hw", "scripts", "tools", "ulp") for path in sorted((tree / top).rglob("*"))
             if path.is_file() and not path.is_symlink() and _is_python(path)]
    done = subprocess.run([PROGRAM, *files], capture_output=True, text=True, check=False)
    found = []
    for line in (done.stdout + done.stderr).splitlines():
        match = COMPLAINT.fullmatch(line)
        if match and PERMITTED in pathlib.Path(match["file"]).read_text().splitlines()[int(match["line"]) - 1]:
            continue
        found.append(line.removeprefix(f"{tree}/"))
    return found
