# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The laws of Documentation/architecture.rst that can be read off the sources: who may include what, and where time comes from.

That no object outside of core/kern needs a symbol of the kernel, the other half of law 1, is asked of every C++ object as it is
built (scripts/make/kbuild/check-object).
"""
import re

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.MULTILINE)
SOURCES = {".c", ".cpp", ".h", ".hpp"}
KERNEL = r"(?:linux|asm|asm-generic|net|uapi|trace|kunit|crypto)/"
# Measures the kernel's own InfiniBand beside ours; or is a program that a guest runs, not a module.
APART = r"/bench/|/tests/guest/"

# Law, whose files it speaks of, which of them it leaves out, what these must not include.
FORBIDDEN = (
    (1, r"(?:core|hw|ulp|include)/", rf"(?:core|include)/kern/|{APART}", KERNEL),
    (2, r"include/(?:ib|hw)/", None, r"(?:kern|rdma|fmt|spdlog|base|pci|fabric|hca|mellanox|connectx|infinihost|ammasso|sm)/"),
    (2, r"include/ib/", None, r"hw/"),
    (2, r"include/hw/mellanox/", None, r"hw/(?:connectx|infinihost)/"),
    (3, r"core/(?:registry|verbs)/", r"/tests?/", r"(?:.*/)?(?:mgmt|connectx|ipoib|soft)/|rdma/ib_(?:mad|sa)\.h"),
    (3, r"core/mgmt/", r"/tests/", r"(?:.*/)?(?:registry|verbs|connectx|ipoib|soft)/(?!.*\.h$)"),
    (3, r"core/(?:sysfs|netlink|uverbs|umad|ucm|cm|rdma_cm)/", r"/tests/", r"(?:.*/)?(?:registry|verbs|mgmt|connectx|ipoib|soft)/(?!.*\.h$)|rdma/driver\.hpp|hw/"),
    (3, r"hw/mellanox/", None, r"(?:.*/)?(?:connectx|infinihost)/"),
    (3, r"hw/", r"/tests/", r"(?:.*/)?(?:registry|verbs|mgmt|ipoib|soft)/|rdma/ib_(?:mad_agent|sa)\.h"),
    (3, r"ulp/", r"/tests/", r"(?:.*/)?(?:registry|verbs|mgmt|soft)/(?!.*\.h$)|rdma/driver\.hpp|hw/"),
    # A driver knows no other's; what has the kernel to know of InfiniBand is told by those above.
    (3, r"hw/connectx/", r"/tests/", r"(?:.*/)?(?:infinihost|ammasso|example)/"),
    (3, r"hw/infinihost/", r"/tests/", r"(?:.*/)?(?:connectx|ammasso|example)/"),
    (3, r"hw/ammasso/", r"/tests/", r"(?:.*/)?(?:connectx|infinihost|mellanox|example)/"),
    (3, r"hw/example/", r"/tests/", r"(?:.*/)?(?:connectx|infinihost|ammasso|mellanox)/"),
    (3, r"(?:core|include)/kern/", r"/tests/", r"(?:rdma|ib|hw)/|(?:\.\./)+(?:registry|verbs|mgmt|sysfs|uverbs|umad|cm|rdma_cm|ucm|netlink)/"),
    # What all rooms stand on stands on none.
    (3, r"tools/base/", r"/tests/", r"(?!base/)\w[\w-]*/(?!.*\.h$)"),
    (3, r"tools/calendar/", r"/tests/", r"(?:pci|hca|mellanox|connectx|infinihost|fabric|sm|vfio-user|vhost-user|weftd)/"),
    # A card knows no protocol, and no protocol a card; neither knows the daemon that holds them, and that holds them by cards/ alone.
    (3, r"tools/pci/", r"/tests/", r"(?:hca|mellanox|connectx|infinihost|fabric|sm|vfio-user|vhost-user|weftd)/"),
    (3, r"tools/(?:vfio-user|vhost-user)/", r"/(?:tests|fuzz)/", r"(?:hca|mellanox|connectx|infinihost|fabric|sm|weftd)/"),
    # What every channel adapter has knows no family of cards, not even the headers of one; a family no card of it, and of
    # the bus what a function is; a card no other.
    (3, r"tools/hca/", None, r"(?:mellanox|connectx|infinihost|example|cards|sm|vfio-user|vhost-user|weftd|pci|hw)/"),
    (3, r"tools/mellanox/", None, r"(?:connectx|infinihost|example|sm|vfio-user|vhost-user|weftd)/|pci/(?!device\.hpp)"),
    (3, r"tools/connectx/", r"/(?:tests|fuzz)/", r"(?:sm|vfio-user|vhost-user|weftd|example|infinihost)/"),
    (3, r"tools/infinihost/", r"/(?:tests|fuzz)/", r"(?:sm|vfio-user|vhost-user|weftd|example|connectx)/"),
    # An Ethernet card knows nothing of the fabric.
    (3, r"tools/ammasso/", r"/(?:tests|fuzz)/", r"(?:sm|hca|fabric|vfio-user|vhost-user|weftd|example|mellanox|connectx|infinihost)/"),
    (3, r"tools/example/", r"/(?:tests|fuzz)/", r"(?:sm|vfio-user|vhost-user|weftd|hca|mellanox|connectx|infinihost)/"),
    (3, r"tools/cards/", r"/tests/", r"(?:sm|vfio-user|vhost-user|weftd|hca|mellanox|connectx|infinihost|example)/"),
    (3, r"tools/endpoint/", r"/tests/", r"(?!(?:cards|fabric|base|ib)/)\w[\w-]*/"),
    (3, r"tools/weftd/", r"/tests/", r"(?:hca|mellanox|connectx|infinihost|ammasso|example|endpoint)/"),
    (7, r"tools/sm/", r"/(?:tests|fuzz)/", r"(?:hca|mellanox|connectx|infinihost|weftd|pci|vfio-user|vhost-user|hw)/"),
    (7, r"tools/fabric/", r"/(?:tests|fuzz)/", r"(?:sm|hca|mellanox|connectx|infinihost|weftd|pci|vfio-user|vhost-user|ethernet|hw)/"),
    # Of the fabric it has the names of faults, of what holds cards only the bound of what a machine may have logged.
    (3, r"tools/ethernet/", r"/(?:tests|fuzz)/", r"(?:sm|hca|mellanox|connectx|infinihost|cards|weftd|vfio-user|vhost-user|hw)/|pci/(?!rated_sink\.hpp)|fabric/(?!link\.hpp)"),
    # TCP knows its loop, and no other room: frames are bytes to it.
    (3, r"tools/tcp/", r"/(?:tests|testing|fuzz)/", r"(?!tcp/|base/)\w[\w-]*/"),
    # iWARP knows neither loops nor sockets.
    (3, r"tools/iwarp/", r"/(?:tests|testing|fuzz)/", r"(?!iwarp/)\w[\w-]*/"),
)
# Law 10: what takes time, threads or chance from the machine; which files may (the seam itself, and programs that no daemon is made of).
BESIDE_THE_SEAM = re.compile(r"\b(?:steady_clock|system_clock|high_resolution_clock)::now\b|\bstd::j?thread\b|\brandom_device\b"
                             r"|\bsleep_(?:for|until)\b|\b(?:clock_gettime|gettimeofday|nanosleep|usleep|getrandom|pthread_create)\(")
AT_THE_SEAM = re.compile(r"tools/base/(?:environment|reactor|closing)\.|/(?:tests|testing|fuzz|bench)/|tools/(?:explore|stranger|traffic|uverbs)/")
# Law 1 lets a module have so much of C: these files (X_module.c where a folder has several modules), of which no line is anything else.
BOILERPLATE = re.compile(r"(?:\w+_)?module\.c|exports\.c")
BOILERPLATE_LINES = re.compile(
    r"""(?: /\*.*?\*/ | //[^\n]* | \s
          | \#include\ [<"](?!linux/)[^\n]* | \#(?:if|ifdef|ifndef|endif)\b[^\n]*
          | KERN_[A-Z_]+\((?:[^()"]|"[^"]*"|\([^()]*\))*\);
          | \w+\ [^{};=]*\);  # a prototype
        )*""", re.DOTALL | re.VERBOSE)


def _files(tree):
    for room in ("core", "hw", "ulp", "include", "tools"):
        for path in sorted((tree / room).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(tree).as_posix(), path


def complaints(tree):
    """What breaks a law in that tree, one line each."""
    found = []
    for name, path in _files(tree):
        text = path.read_text()
        for law, whose, but, what in FORBIDDEN:
            if not re.match(whose, name) or (but and re.search(but, name)):
                continue
            found += [f"{name} includes {include}, against law {law}" for _, include in INCLUDE.findall(text) if re.match(what, include)]
        if name.startswith("tools/") and not AT_THE_SEAM.search(name):
            found += [f"{name} names {word}, against law 10" for word in BESIDE_THE_SEAM.findall(text)]
        if name.endswith(".c") and re.match(r"core|hw|ulp", name) and not re.search(rf"core/kern/|{APART}", name):
            if not BOILERPLATE.fullmatch(path.name):
                found.append(f"{name} is C, against law 1, which lets a module have module.c or NAME_module.c, and exports.c")
            elif not BOILERPLATE_LINES.fullmatch(text):
                found.append(f"{name} holds more than a module's boilerplate, against law 1")
    return found
