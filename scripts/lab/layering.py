# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks every #include of the tree against the allow-list of Documentation/architecture.rst.

A line of the list is `DIRECTORY: PERMITTED ...`. A file belongs to the longest DIRECTORY that its path begins with, or, below that, to
`DIRECTORY/tests` if one of the directories in between holds tests. The file may include its own directory, the directories and single files that the
line permits, and the standard library. A test may also include whatever the tested directory may include. A second list is for imports of Python
files.
"""
import ast
import os.path
import pathlib
import re
import sys

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
SOURCES = {".c", ".cpp", ".h", ".hpp"}
TOP = ("core", "hw", "ulp", "include", "tools")
KERNEL = re.compile(r"(?:linux|asm|asm-generic|net|uapi|trace|kunit|crypto)/")
LIBRARIES = re.compile(r"(?:fmt|spdlog|nlohmann|CLI|toml\+\+|gtest|gmock|ibverbs|infiniband|openssl)/|sodium\.h$")
TESTS = {"tests", "testing", "fuzz", "bench"}
# Benchmarks also measure the kernel's own InfiniBand stack, and programs for guests are not part of a module.
EXEMPT = re.compile(r"(?:core|hw|ulp)/.*/bench/|.*/tests/guest/")
# Include directories of the compilers of the two halves, and the one with generated headers that replaces them for the simulated kernel.
SEARCHED = ("tools", "include", ".", "core", "core/kern/sim/include")
LIST = r"^\.\. {}\n\n::\n\n((?:    .*\n|\n)+)"
# The files of the test harness in the Debian package, as debian/rules lists them.
PARTS = re.compile(r"^parts := \$\(addprefix scripts/lab/,\$\(addsuffix \.py,([\w ]+)\)\)$", re.MULTILINE)
PYTHON = ("Documentation", "core", "hw", "scripts", "tools", "ulp")


def allowed(tree, label="layering"):
    """Returns {directory: set of directories that it may include}, as the architecture page documents it."""
    listed = re.search(LIST.format(label), (tree / "Documentation/architecture.rst").read_text(), re.MULTILINE)
    rows = {}
    for line in listed[1].splitlines() if listed else ():
        directory, _, permitted = line.strip().partition(":")
        if directory:
            rows[directory] = set(permitted.split())
    return rows


def component(path, rows):
    """Returns the directory of the list to which the file belongs; None if it belongs to none."""
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        directory = "/".join(parts[:length])
        if directory in rows:
            break
    else:
        return None
    return f"{directory}/tests" if TESTS & set(parts[length:-1]) else directory


def _included(name, include, files):
    """Returns the file of the tree that the #include refers to; None if it is outside of the tree."""
    for directory in (os.path.dirname(name), *SEARCHED):
        path = os.path.normpath(os.path.join(directory, include))
        if path in files:
            return path
    return None


def permitted(directory, rows):
    """Returns the directories that files of a directory may include. Tests may include the same as the tested directory, and that directory
    itself."""
    found = {directory} | rows.get(directory, set())
    if directory.endswith("/tests"):
        tested = directory.removesuffix("/tests")
        found |= {tested} | rows.get(tested, set())
    return found


def complaints(tree, rows=None):
    """Returns the includes that the list does not permit, one line each, and the files that it does not cover."""
    rows = allowed(tree) if rows is None else rows
    if not rows:
        return ["Documentation/architecture.rst has no list of permitted includes after `.. layering`"]
    files = {path.relative_to(tree).as_posix(): path for top in TOP for path in sorted((tree / top).rglob("*"))
             if path.suffix in SOURCES and path.is_file()}
    found = []
    for name, path in files.items():
        if EXEMPT.match(name):
            continue
        own = component(name, rows)
        if own is None:
            found.append(f"{name} is in no directory that Documentation/architecture.rst lists")
            continue
        may = permitted(own, rows)
        for include in INCLUDE.findall(path.read_text()):
            taken = _included(name, include, files)
            if taken:
                wanted = component(taken, rows)
            elif KERNEL.match(include):
                wanted = "linux"
            elif LIBRARIES.match(include):
                wanted = "libraries"
            else:
                continue
            if wanted not in may and taken not in may:
                found.append(f"{name} includes {include}: {own} may not include {wanted} (Documentation/architecture.rst, Layering)")
    return found


def _imported(source):
    """Returns the first parts of the names of the modules that a Python file imports, except relative imports and the standard library."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def python_complaints(tree, rows=None):
    """Returns the imports that the list does not permit, one line each, and the Python files that it does not cover."""
    rows = allowed(tree, "layering-python") if rows is None else rows

    def row_of(name):
        return max((row for row in rows if name.startswith(f"{row}/")), key=len, default=None)
    files = {path.relative_to(tree).as_posix(): path for top in PYTHON for path in sorted((tree / top).rglob("*.py"))}
    found = []
    for name, path in files.items():
        own = row_of(name)
        if own is None:
            found.append(f"{name} is in no directory that Documentation/architecture.rst lists for Python")
            continue
        for module in sorted(_imported(path.read_text())):
            # A module is a file, or a directory with files.
            owners = {row_of(other) for other in files if module in (other.split("/")[-2], other.split("/")[-1].removesuffix(".py"))} or {module}
            if not owners & {own, *rows[own]}:
                found.append(f"{name} imports {module}: {own} may not import {' or '.join(sorted(map(str, owners)))} (Documentation/architecture.rst, Layering)")
    return found


def _harness_modules(source):
    """Returns the names of the modules of the test harness that a Python file imports."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("lab.")}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == "lab":
                names |= {alias.name for alias in node.names}
            elif node.module.startswith("lab."):
                names.add(node.module.removeprefix("lab."))
    return names


def package_complaints(tree):
    """Returns a line for each file of the package that imports a module of the test harness which is not in the package, and for each module in it that
    no file needs."""
    listed = PARTS.search((tree / "debian/rules").read_text())
    if not listed:
        return ["debian/rules has no list of the test harness's files in the package"]
    parts = {f"scripts/lab/{name}.py" for name in listed[1].split()}
    session = [path for path in sorted((tree / "tools/weft/session").rglob("*")) if path.suffix == ".py" or path.name == "weft-session"]
    found, needed = [], {"scripts/lab/__init__.py"}
    for path in [*(tree / part for part in sorted(parts)), *session]:
        source = path.read_text()
        # Some are programs, which others run.
        needed |= {part for part in parts if pathlib.PurePath(part).name in source}
        for name in sorted(_harness_modules(source)):
            part = f"scripts/lab/{name}.py"
            # Other names are those of the package's __init__.py.
            if (tree / part).is_file():
                needed.add(part)
                if part not in parts:
                    found.append(f"{path.relative_to(tree)} imports {part}, which debian/rules does not install")
    return found + [f"debian/rules installs {part}, which no installed file uses" for part in sorted(parts - needed)]
