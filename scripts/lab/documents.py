# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the documents against the sources: named tests and files exist, public functions are described, and the architecture rules hold."""
import re

from lab import cache, conventions, driver_lists, kernel_doc, layering, source_rules, testing
from lab.errors import LabError

RULE = re.compile(r"^([A-Z]+-\d\d)(?: to [A-Z]+-\d\d)?$", re.MULTILINE)
OF_RULE = r"(?:notify|lock|event|chan|mgmt|rcm|cm|ipoib)_\d\d"
TEST_OF_RULE = re.compile(OF_RULE)
# A path relative to the top of the tree. A path with a pattern or a placeholder in it is not checked.
NAMED_FILE = re.compile(r"`((?:core|hw|ulp|include|tools|scripts|Documentation)/[\w./+-]*)`")


def _texts(pattern, below=("core", "hw", "ulp", "tools")):
    return {path: path.read_text() for top in below for path in sorted((cache.TREE / top).glob(pattern))}


def _tests():
    """Returns the names of all tests: of KUnit and GoogleTest, and (file, function) of guest tests."""
    units, guests = set(), set()
    # A header has the cases that several suites share.
    for text in (*_texts("**/tests/**/*.cpp").values(), *_texts("**/tests/**/*.hpp").values()):
        units.update(re.findall(r"KUNIT_CASE\([\s\\]*(\w+)\)", text))
        units.update(re.findall(r"^TEST(?:_[FP])?\(\w+,\s*(\w+)\)", text, re.MULTILINE))
    for path, text in _texts("**/tests/guest/*.py").items():
        guests.update((path.name, name) for name in re.findall(r"^@test\b[^\n]*(?:\n[^\n]*)*?\ndef (\w+)", text, re.MULTILINE))
        guests.update((path.name, name) for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE))
    return units, guests


# Functions after the file in which they are: "``core/verbs/cq.cpp`` (``flush_cq``, ``Cq::poll()``)".
FUNCTIONS = re.compile(r"``([\w/.]+\.[ch]p?p?)`` \(((?:``[\w:]+(?:\(\))?``(?:, | and )?)+)\)")


def missing_functions(tree, rule, text):
    """Returns the functions that a rule's text lists after a file and that are not in this file. Names of classes are not checked."""
    return [f"{rule} names {function} in {file}, which does not have it" for file, names in FUNCTIONS.findall(" ".join(text.split()))
            for function in re.findall(r"(\w+)(?:\(\))?``", names) if (tree / file).is_file() and not re.search(rf"\b{function}\b", (tree / file).read_text())]


def _rules(text):
    """Yields (rule, text) in order."""
    found = list(RULE.finditer(text))
    for this, following in zip(found, found[1:] + [None]):
        yield this[1], text[this.end():following.start() if following else len(text)]


def check_rules():
    """Returns errors in Documentation/rules.rst."""
    units, guests = _tests()
    complaints, named = [], {}
    for rule, text in _rules((cache.TREE / "Documentation/rules.rst").read_text()):
        tests = re.findall(r"``([^`]+)``", text.split("Tests", 1)[1]) if "Tests" in text else []
        for name in (" ".join(test.split()) for test in tests):
            if guest := re.fullmatch(r"(\w+\.py): (\w+)", name):
                if guest.groups() not in guests:
                    complaints.append(f"{rule} names the test {name}, which does not exist")
            elif name.endswith("…"):
                matching = {unit for unit in units if unit.startswith(name[:-1])}
                if not matching:
                    complaints.append(f"{rule} names the tests {name}, none of which exists")
                for unit in matching:
                    named.setdefault(unit, set()).add(rule)
            elif TEST_OF_RULE.match(name):
                if name not in units:
                    complaints.append(f"{rule} names the test {name}, which does not exist")
                named.setdefault(name, set()).add(rule)
        complaints += missing_functions(cache.TREE, rule, text)
        if not tests and not re.search(r"No tests?\b|no tests?\b|counted by", text):
            complaints.append(f"{rule} neither names a test nor states that there is none")
    for unit in sorted(units):
        for word in re.findall(rf"(?:^|_)({OF_RULE})(?=_)", unit):
            rule = word.upper().replace("_", "-")
            if rule not in named.get(unit, ()):
                complaints.append(f"{rule} does not name its test {unit}")
    return complaints


def check_functions():
    """Returns errors for functions, structures and methods of include/rdma without a complete kernel-doc description."""
    headers = {str(path.relative_to(cache.TREE)): path.read_text() for path in sorted((cache.TREE / "include/rdma").glob("**/*.h"))}
    return kernel_doc.complaints(headers)


def missing_files(tree):
    """Returns errors for references to files that do not exist: "``core/verbs/qp.cpp``"."""
    found = []
    for page in [*sorted(tree.glob("*.md")), *sorted(tree.glob("*.rst")), *sorted((tree / "Documentation").glob("*.rst"))]:
        for name in NAMED_FILE.findall(page.read_text()):
            if not re.search(r"NAME|ROOM", name) and not (tree / name).exists():
                found.append(f"{page.relative_to(tree)} names {name}, which does not exist")
    return found


# The section of testing.rst that lists the tests that run only with --full, and the files whose tests do more repetitions with --full.
FULL_SECTION = re.compile(r"^What only --full shows\n=+\n(.*?)(?=^\S[^\n]*\n=+\n)", re.MULTILINE | re.DOTALL)


def check_full():
    """Returns the differences between this list and the guest tests and files that it must contain."""
    section = FULL_SECTION.search((cache.TREE / "Documentation/testing.rst").read_text())
    named = set(re.findall(r"``(\w+\.\w+)``", section[1])) if section else set()
    texts = _texts("**/tests/guest/*.py", ("core", "hw", "ulp", "tools", "scripts"))
    there = {f"{path.stem}.{name}" for path, name, options in testing.discover() if not options.kernels}
    there |= {f"{path.stem}.py" for path, text in texts.items() if "lab.rounds(" in text or "full()" in text}
    return ([f"testing.rst does not list {name}, which only --full runs" for name in sorted(there - named)]
            + [f"testing.rst lists {name} as run only with --full, which is wrong" for name in sorted(named - there)])


# The comment with the source of a figure of a state machine: "// states: ulp/ipoib/queues.hpp State".
FIGURE = re.compile(r"^ *// states: (\S+) (\w+)\n(.*?)^ *}$", re.MULTILINE | re.DOTALL)


def check_figures(tree):
    """Returns errors for figures of state machines whose states are not exactly those of the code."""
    found = []
    for page in sorted((tree / "Documentation").glob("*.rst")):
        for source, name, body in FIGURE.findall(page.read_text()):
            drawn = {state for edge in re.findall(r"(\w+) -> (\w+)", body) for state in edge}
            enumeration = re.search(rf"enum class {name} : [\w:]+ {{(.*?)}};", re.sub(r"/\*.*?\*/", "", (tree / source).read_text(), flags=re.DOTALL), re.DOTALL)
            states = set(re.findall(r"\w+", enumeration[1])) if enumeration else set()
            found += [f"{page.relative_to(tree)} draws the state {state}, which {name} in {source} does not have" for state in sorted(drawn - states)]
            found += [f"{page.relative_to(tree)} does not draw {state}, a state of {name} in {source}" for state in sorted(states - drawn)]
    return found


# Fedora's names of the packages that scripts/packages lists by Debian's. Ubuntu has Debian's names, and build-essential also contains g++ and make.
FEDORA = {
    "build-essential": ("gcc-c++", "make"), "busybox-static": ("busybox",), "debian-archive-keyring": ("debian-keyring",), "dpkg-dev": ("dpkg",),
    "g++": ("gcc-c++",), "libcli11-dev": ("cli11-devel",), "libfmt-dev": ("fmt-devel",), "libgmock-dev": ("gmock-devel",), "libgtest-dev": ("gtest-devel",),
    "libibumad-dev": ("rdma-core-devel",), "libibverbs-dev": ("rdma-core-devel",), "libsodium-dev": ("libsodium-devel",), "libspdlog-dev": ("spdlog-devel",), "libssl-dev": ("openssl-devel",),
    "libtomlplusplus-dev": ("tomlplusplus-devel",), "nlohmann-json3-dev": ("json-devel",), "procps": ("procps-ng",), "xz-utils": ("xz",),
}
UBUNTU = {"g++": ("build-essential",), "make": ("build-essential",)}


def check_packages(tree):
    """support.rst lists all packages of programs.list and lab.list for the hosts that have only a list of packages."""
    text = (tree / "Documentation/support.rst").read_text()
    needed = {package for name in ("programs", "lab") for package in (tree / f"scripts/packages/{name}.list").read_text().splitlines()
              if package and not package.startswith("#")}
    found = []
    for host, names in (("Ubuntu 24.04", UBUNTU), ("Fedora", FEDORA)):
        # The entry of a definition list: a line of text, and then indented lines.
        entry = re.search(rf"^{host}, .*\n((?:   .*\n)+)", text, re.MULTILINE)
        listed = {word for literal in re.findall(r"``([^`]*)``", entry[1]) for word in literal.split()} if entry else set()
        for package in sorted(needed):
            found += [f"support.rst does not list {name} for {host}, which scripts/packages requires"
                      for name in names.get(package, (package,)) if name not in listed]
    return found


# Where the names of a card's faults are defined: the array of those that all three models have, and constants in the classes of each model.
SHARED_FAULTS = ("tools/cards/mellanox_icm/faults.cpp", re.compile(r"kNames = \{(.*?)\};", re.DOTALL))
ONE_FAULT = re.compile(r"^\tstatic constexpr std::string_view k\w+ = \"([a-z-]+)\";$", re.MULTILINE)
HELD_CARD = "tools/cards/mellanox_icm/held_card.hpp"
FAULTS_OF = {"mlx4": (HELD_CARD,), "mthca": (HELD_CARD,), "mlx5": (HELD_CARD, "tools/cards/mlx5/model.cpp")}


def check_faults(tree):
    """The tables of fault-injection.rst (one for each model), the buttons of the web page, and weft.1 have the faults of the card models, and no others."""
    path, array = SHARED_FAULTS
    shared = set(re.findall(r'"([a-z-]+)"', array.search((tree / path).read_text())[1]))
    models = {model: shared | {name for source in sources for name in ONE_FAULT.findall((tree / source).read_text())} for model, sources in FAULTS_OF.items()}
    buttons = re.search(r"^const CARD = \{\n(.*?)^\};", (tree / "tools/weft/web/page/faults.js").read_text(), re.MULTILINE | re.DOTALL)[1]
    manual = (tree / "Documentation/man/weft.1").read_text().split('.BI "card fault ', 1)[1].split("\n.RE\n", 1)[0].replace("\\-", "-")
    everything = set.union(*models.values())
    documented = [("faults.js", everything, set(re.findall(r"^  '?([a-z-]+)'?: harm", buttons, re.MULTILINE))),
                  ("weft.1", everything, {name for line in re.findall(r"^\\fB.*$", manual, re.MULTILINE) for name in re.findall(r"\\fB([a-z-]+)\\fR", line)})]
    page = (tree / "Documentation/fault-injection.rst").read_text()
    for model, faults in models.items():
        section = re.search(rf"^\S*{model}\b.*\n-+\n((?:.*\n)*?)(?=\S.*\n[-=]+\n|\Z)", page, re.MULTILINE)
        documented.append((f"fault-injection.rst, {model}", faults, set(re.findall(r"^``([a-z-]+)``  ", section[1], re.MULTILINE)) if section else set()))
    return ([f"{place} does not describe the fault {name}, which the card has" for place, faults, names in documented for name in sorted(faults - names)]
            + [f"{place} describes the fault {name}, which the card does not have" for place, faults, names in documented for name in sorted(names - faults)])


def complaints():
    """Returns the errors of all checks."""
    return check_packages(cache.TREE) + check_faults(cache.TREE) + check_figures(cache.TREE) + check_full() + check_rules() + check_functions() + missing_files(cache.TREE) + driver_lists.complaints(cache.TREE) + layering.complaints(cache.TREE) + layering.python_complaints(cache.TREE) + layering.package_complaints(cache.TREE) + source_rules.complaints(cache.TREE) + conventions.unlicensed(cache.TREE)


def check():
    """Raises an exception with all errors that were found."""
    if found := complaints():
        raise LabError("the documentation and the sources differ", "\n".join(found))
