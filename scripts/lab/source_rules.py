# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the architecture rules of Documentation/architecture.rst that one source file can violate by itself: code in tools/ gets time, threads and random
numbers only through tools/base, its mutexes have lock annotations, and a module outside core/kern has no C code except its entry and its exports.
lab/layering.py checks what sources include, and scripts/make/kbuild/check-object checks which symbols an object needs."""
import re

SOURCES = {".c", ".cpp", ".h", ".hpp"}
# Benchmarks also measure the kernel's own InfiniBand stack, and programs for guests are not part of a module.
EXEMPT = re.compile(r"/bench/|/tests/guest/")
# Rule 10: calls that get time, threads or random numbers from the host, and the files that may use them: the interface to the host itself, and
# programs and the library that are not linked into a daemon.
HOST_CALLS = re.compile(r"\b(?:steady_clock|system_clock|high_resolution_clock)::now\b|\bstd::j?thread\b|\brandom_device\b"
                             r"|\bsleep_(?:for|until)\b|\b(?:clock_gettime|gettimeofday|nanosleep|usleep|getrandom|pthread_create)\(")
MAY_CALL_THE_HOST = re.compile(r"tools/base/(?:environment|reactor|closing)\.|/(?:tests|testing|fuzz|bench)/|tools/(?:explore|tests|attach/umad)/")
# Rule 11: mutexes without annotations, and a declaration of an annotated one.
BARE_MUTEX = re.compile(r"\bstd::(?:(?:recursive_|shared_|timed_)*mutex|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable(?:_any)?)\b")
MAY_USE_BARE_MUTEXES = re.compile(r"tools/base/mutex\.hpp|tools/(?:explore|tests)/")
MUTEX = re.compile(r"^\s*(?:mutable |constinit |static )*Mutex (\w+);", re.MULTILINE)
# Rule 1: the C files that a module may have (X_module.c if a directory has several modules), and the lines that they may contain.
BOILERPLATE = re.compile(r"(?:\w+_)?module\.c|exports\.c")
BOILERPLATE_LINES = re.compile(
    r"""(?: /\*.*?\*/ | //[^\n]* | \s
          | \#include\ [<"](?!linux/)[^\n]* | \#(?:if|ifdef|ifndef|endif)\b[^\n]*
          | KERN_[A-Z_]+\((?:[^()"]|"[^"]*"|\([^()]*\))*\);
          | \w+\ [^{};=]*\);  # a prototype
        )*""", re.DOTALL | re.VERBOSE)


def _files(tree):
    for top in ("core", "hw", "ulp", "include", "tools"):
        for path in sorted((tree / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(tree).as_posix(), path


def _host_complaints(name, text):
    if not MAY_CALL_THE_HOST.search(name):
        yield from (f"{name} uses {call}, against rule 10" for call in HOST_CALLS.findall(text))
    if not MAY_USE_BARE_MUTEXES.match(name):
        yield from (f"{name} uses {mutex}, which has no annotations, against rule 11" for mutex in sorted(set(BARE_MUTEX.findall(text))))
        yield from (f"{name} declares the mutex {mutex} and nothing that it guards, against rule 11" for mutex in MUTEX.findall(text)
                    if not re.search(rf"WEFT_(?:PT_)?GUARDED_BY\({mutex}\)", text))


def _module_complaints(name, path, text):
    if not BOILERPLATE.fullmatch(path.name):
        yield f"{name} is C, against rule 1: a module may have module.c or NAME_module.c, and exports.c"
    elif not BOILERPLATE_LINES.fullmatch(text):
        yield f"{name} has more than a module's boilerplate, against rule 1"


def complaints(tree):
    """Returns the violations of a rule in that tree, one line each."""
    found = []
    for name, path in _files(tree):
        text = path.read_text()
        if name.startswith("tools/"):
            found += _host_complaints(name, text)
        elif name.endswith(".c") and re.match(r"core|hw|ulp", name) and not name.startswith("core/kern/") and not EXEMPT.search(name):
            found += _module_complaints(name, path, text)
    return found
