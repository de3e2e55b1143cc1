# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks that functions whose kernel-doc says "Context: process" call KERN_MIGHT_SLEEP() or may_sleep() (LOCK-02).

A definition that calls neither passes if it calls another function of the same directory that does: ib_modify_qp() leaves the check to
ib_modify_qp_user(). With these calls, weft-explore and kernels with debug checks report every call of such a function in another context.
"""
import re

from lab import kernel_doc

CHECK = re.compile(r"\b(?:KERN_MIGHT_SLEEP|may_sleep)\(")
# A definition that begins at the left margin, up to the closing brace at the left margin.
DEFINITION = re.compile(r"^(?:[\w:<>*&~ ]+[ *&])?((?:\w+::)*~?\w+)\([^;{}]*\)(?: const)?(?: [A-Z_]+(?:\([^)]*\))?)*\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
PROCESS = re.compile(r"Context:\s+process\b")


def documented(text):
    """Yields the functions of a header that are documented to run in process context, and whether the header defines them inline. Types of handlers
    and macros are excluded: handlers are defined by consumers, and the function behind a macro has the check."""
    for block in kernel_doc.blocks(text):
        if not block.kind and not block.declaration.startswith(("typedef ", "#define ")) and PROCESS.search(" ".join(block.text.split())) and "(" in block.declaration:
            yield block.name, block.declaration.removeprefix("RDMA_MUST_CHECK ").startswith("static inline")


def checked(texts):
    """Returns the names of all functions in the sources that check their context, directly or by calls of functions in the same text."""
    found = set()
    for text in texts:
        bodies = {}
        for name, body in DEFINITION.findall(text):
            bodies.setdefault(name.rsplit("::", 1)[-1], []).append(body)
        passing = {name for name, parts in bodies.items() if any(CHECK.search(part) for part in parts)}
        while True:
            calls = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(passing))) + r")\(") if passing else None
            more = {name for name, parts in bodies.items() if calls and name not in passing and any(calls.search(part) for part in parts)}
            if not more:
                break
            passing |= more
        found |= passing
    return found


def complaints(tree):
    """Returns an error for each function that is documented to need process context and does not check it."""
    directories = {}
    for path in sorted(tree.glob("core/**/*.cpp")):
        if not {"tests", "sim", "bench"} & set(path.parts):
            directories.setdefault(path.parent, []).append(path.read_text())
    known = checked("\n".join(texts) for texts in directories.values())
    found = []
    for header in sorted(tree.glob("include/rdma/**/*.h")):
        text = header.read_text()
        inline = dict(re.findall(r"static inline[^;{]*?\b(\w+)\([^;{]*\{(.*?)^\}", text, re.DOTALL | re.MULTILINE))
        for name, is_inline in documented(text):
            body = inline.get(name, "") if is_inline else ""
            calls = ["ib_checked_process_mad" if call == "RDMA_PROCESS_MAD" else call for call in re.findall(r"\b(\w+)\(", body)]
            if name not in known and not any(call in known for call in calls):
                found.append(f"{header.relative_to(tree)}: {name}() is documented with \"Context: process\" and does not check it")
    return found
