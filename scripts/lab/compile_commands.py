# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Converts the compile commands that Kbuild and CMake have recorded, so that clang's tools can use them."""
import json
import os
import pathlib
import shlex
import subprocess

CLANG = "clang++-19"
# Replaces the kernel's flags for code generation.
FREESTANDING = ["-ffreestanding", "-fno-exceptions", "-fno-rtti", "-mno-sse", "-mcmodel=kernel"]

GCC_ALONE = {"-fno-gnu-unique"}


def recorded(objects):
    """Yields (source, words of the command line) for each C++ object below Kbuild's object directory."""
    for path in sorted(objects.rglob(".*.o.cmd")):
        words = shlex.split(path.read_text().split("\n", 1)[0].split(":=", 1)[1])
        source = words[words.index("-c") + 3].rstrip(";") if "-c" in words else ""
        if source.endswith(".cpp") and os.path.exists(source):
            yield source, words


def meaning(words):
    """Returns the words of a command line that affect the meaning of the source, without options that only gcc supports."""
    kept = []
    at = iter(words)
    for word in at:
        if word in ("-include", "-isystem"):
            kept += [word, next(at)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    return kept


def of_modules(kdir, objects, clang=CLANG):
    """Yields (source, arguments for clang, to be run in `kdir`) for each C++ source of the modules."""
    resources = subprocess.run([clang, "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
    for source, words in recorded(objects):
        yield source, ["-x", "c++", "-nostdinc", *meaning(words), "-isystem", f"{resources}/include", *FREESTANDING]


def database(kdir, objects, host):
    """Returns the contents of compile_commands.json: modules as built for `kdir`, and the host side as CMake gives it, without ccache. A source of the
    modules that host programs have too (the explorer, the fuzzers) is listed for the modules only."""
    entries = [{"directory": str(kdir), "file": source, "arguments": [CLANG, *arguments, "-c", source]}
               for source, arguments in of_modules(kdir, pathlib.Path(objects))]
    of_a_module = {os.path.realpath(entry["file"]) for entry in entries}
    for entry in json.loads(pathlib.Path(host).read_text()):
        if os.path.realpath(entry["file"]) in of_a_module:
            continue
        words = [word for word in shlex.split(entry["command"]) if word not in GCC_ALONE]
        while words and not os.path.basename(words[0]).startswith(("c++", "g++", "clang++")):
            words.pop(0)
        entries.append({"directory": entry["directory"], "file": entry["file"], "arguments": words})
    return entries
