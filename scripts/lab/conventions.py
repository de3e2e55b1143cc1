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
# First words of a summary that are not the imperative of a verb: articles and other words in front of a noun, and the forms in -ing and -ed.
NOT_A_VERB = re.compile(r"an?|the|this|that|these|those|what|which|who|where|when|how|one|some|all|no|more|fewer|less|new|\w+ing|\w+ed")
# Verbs with the same endings.
VERBS = {"bring", "ping", "ring", "string", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
# Words that the logs of Linux, QEMU and rdma-core do not use as the verb of a subject, and words that they use instead.
UNUSUAL_VERBS = {
    "bear": "tolerate", "believe": "trust", "have": "add, use", "hear": "receive, handle", "heed": "respect, check", "judge": "verify, test",
    "know": "detect, store", "lend": "share, map", "let": "allow, make, or the verb of what the code then does", "look": "check, search",
    "mend": "fix", "own": "manage, free", "say": "report, document, state", "see": "detect, check", "speak": "implement, support", "spare": "avoid",
    "strike": "remove", "tell": "report, notify", "want": "require"}
# Words of early texts that readers did not understand, anywhere in a subject.
UNUSUAL_WORDS = {
    "beside": "in addition to, compared with, next to", "mended": "fixed", "planted": "injected", "stranger": "independent peer", "strangers": "independent peers",
    "twin": "counterpart", "twins": "counterparts", "whoever": "the program, packet or caller that"}
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
    return summary_complaint(subject, subject.split(": ", 1)[1])


def summary_complaint(subject, summary):
    """Returns the error in the words of a subject's summary, or None."""
    words = summary.split()
    if len(words) < 2:
        return f"'{subject}' has only one word after the subsystem: the object of the verb is missing"
    if NOT_A_VERB.fullmatch(words[0]) and words[0] not in VERBS:
        return f"'{subject}': '{words[0]}' is not an imperative, such as fix, add, remove, reject"
    if words[0] in UNUSUAL_VERBS:
        return f"'{subject}': '{words[0]}' is not a verb of the kernel's log; write {UNUSUAL_VERBS[words[0]]}"
    for word in re.findall(r"[\w/-]+", summary):
        if word in UNUSUAL_WORDS:
            return f"'{subject}': '{word}' is not a word of the kernel's log; write {UNUSUAL_WORDS[word]}"
    return None


def subjects(tree):
    """Returns errors in the subjects of commits that are neither on the upstream branch nor on main."""
    listed = _git(tree, "log", "--format=%s", "@{upstream}..HEAD")
    if listed is None:
        listed = _git(tree, "log", "--format=%s", "main..HEAD")
    return [complaint for complaint in map(subject_complaint, (listed or "").splitlines()) if complaint]
