# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the rules of CONTRIBUTING.rst for every file and every commit."""
import pathlib
import re
import subprocess

LICENCE = "SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB"
LICENCE_LINES = 3
# The format that licence scanners expect: in sources, only the end of the comment may follow.
LICENCE_ALONE = re.compile(re.escape(LICENCE) + r"(?: \*/)?$")
SOURCES = (".c", ".h", ".cpp", ".hpp")
# Files that an apply script copies into the kernel's source have the kernel's licence.
NOT_OURS = re.compile(r"LICENSES/|scripts/kernel/um(?:-debug)?/(?:irq_work|frames)\.[ch]$")
SUBSYSTEM = r"[a-z][\w./-]*"
SUBJECT = re.compile(rf"{SUBSYSTEM}(?:, {SUBSYSTEM})*: \S.*[^.\s]")
AMBIGUOUS = {name: f"hw/{name} for the driver, card/{name} for the emulated card" for name in ("mlx4", "mthca", "amso1100")}
SUBJECT_LENGTH = 72
MADE_BY_GIT = re.compile(r"(?:Merge|Revert|fixup!|squash!) ")


def _git(tree, *words):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", tree, *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _files(tree):
    """Returns the names of the tree's files: those that git tracks or would add, or, without git, all files."""
    listed = _git(tree, "ls-files", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        return listed.splitlines()
    return sorted(path.relative_to(tree).as_posix() for path in pathlib.Path(tree).rglob("*") if path.is_file())


def unlicensed(tree):
    """Returns errors for files without a licence in the expected place."""
    complaints = []
    for name in _files(tree):
        path = pathlib.Path(tree) / name
        if NOT_OURS.match(name) or not path.is_file():
            continue
        # A picture has its licence in the first text element, and its lines end with a line feed only.
        with path.open(errors="replace", newline="\n") as file:
            says = LICENCE_ALONE if name.endswith(SOURCES) else re.compile(re.escape(LICENCE))
            if not any(says.search(line.rstrip("\n")) for line, _ in zip(file, range(LICENCE_LINES))):
                complaints.append(f"{name} does not say '{LICENCE}' in its first {LICENCE_LINES} lines")
    return complaints


def subject_complaint(subject):
    """Returns the error in a commit's subject, or None."""
    if MADE_BY_GIT.match(subject):
        return None
    if not SUBJECT.fullmatch(subject):
        return f"'{subject}' is not 'subsystem: what it does', without a full stop"
    if len(subject) > SUBJECT_LENGTH:
        return f"'{subject}' has {len(subject)} characters; a subject has at most {SUBJECT_LENGTH}"
    for subsystem in subject.split(": ", 1)[0].split(", "):
        if subsystem in AMBIGUOUS:
            return f"'{subject}': '{subsystem}' could be two things: {AMBIGUOUS[subsystem]}"
    return None


def subjects(tree):
    """Returns errors in the subjects of commits that are neither on the upstream branch nor on main."""
    listed = _git(tree, "log", "--format=%s", "@{upstream}..HEAD")
    if listed is None:
        listed = _git(tree, "log", "--format=%s", "main..HEAD")
    return [complaint for complaint in map(subject_complaint, (listed or "").splitlines()) if complaint]
