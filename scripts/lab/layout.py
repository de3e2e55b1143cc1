# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Formats C and C++ sources: clang-format lays out the code, and comments are filled to the same column limit. Nothing changes except white space and
the line breaks of comments."""
import hashlib
import pathlib
import re
import shutil
import subprocess
import textwrap

from lab import conventions
from lab.errors import LabError

PROGRAM = "clang-format-19"     # other versions format differently
COLUMNS = 100
AT_ONCE = 40
TAB = 8
SOURCE = re.compile(r".*\.(?:c|cpp|h|hpp)$")
# Files that become parts of kernels under test, which have the kernel's layout.
NOT_OURS = re.compile(r"scripts/kernel/um/")
SLASHES = re.compile(r"(\t*)//( .*|)$")
STARS = re.compile(r"(\t*) \*( .*|)$")
ALONE = re.compile(r"(\t*)/\* (.*) \*/$")
# Beginnings of a separate paragraph: kernel-doc's parts, and items of lists.
BEGINS = re.compile(r"@|- |\* |\d+\. |\(?[a-z0-9]\) |(?:Return|Context|Errors?)\b.*: ?|[\w.~:]+\(\) - |(?:class|struct|enum) \w+ - ")
# Lines with manual layout: more than one blank in a row, drawings, code, commands.
BY_HAND = re.compile(r"\S {2,}\S|[│─→]|::$|[{};]$|\|.*\|")


def width(line):
    return len(line.expandtabs(TAB))


def _filled(prefix, lines, opening=None):
    """Returns the lines of a comment (texts without their marks) with filled paragraphs. opening: the beginning of the first line, instead of the prefix."""
    out, paragraph = [], []

    def flush():
        if not paragraph:
            return
        texts = [text.strip() for text in paragraph]
        hang = paragraph[1][:len(paragraph[1]) - len(paragraph[1].lstrip())] if len(paragraph) > 1 else paragraph[0][:len(paragraph[0]) - len(paragraph[0].lstrip())]
        lead = paragraph[0][:len(paragraph[0]) - len(paragraph[0].lstrip())]
        if len(paragraph) == 1 and re.match(r"- |\* ", texts[0]):
            hang = lead + "  "
        too_wide = any(width(prefix + text) > COLUMNS for text in paragraph)
        if not too_wide or any(BY_HAND.search(text.strip()) for text in paragraph):
            out.extend(paragraph)
        else:
            room = COLUMNS - width(prefix)
            out.extend(textwrap.wrap(" ".join(texts), room, initial_indent=lead, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False))
        paragraph.clear()

    for text in lines:
        indent = len(text) - len(text.lstrip())
        if not text.strip():
            flush()
            out.append("")
            continue
        if paragraph and (paragraph[0].startswith("SPDX-") or BEGINS.match(text.strip()) or (indent != len(paragraph[-1]) - len(paragraph[-1].lstrip()) and len(paragraph) > 1)
                          or (len(paragraph) == 1 and indent < len(paragraph[0]) - len(paragraph[0].lstrip()))
                          or (len(paragraph) == 1 and indent > len(paragraph[0]) - len(paragraph[0].lstrip()) and not BEGINS.match(paragraph[0].strip()))):
            flush()
        paragraph.append(text)
    flush()
    return [(prefix + text).rstrip() for text in out]


def fill_comments(source):
    """Returns the source with reflowed comments, as far as these are on separate lines and have a line that is too long."""
    lines = source.split("\n")
    out = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if match := SLASHES.match(line):
            end = at
            texts = []
            while end < len(lines) and (more := SLASHES.match(lines[end])) and more[1] == match[1]:
                texts.append(more[2][1:] if more[2] else "")
                end += 1
            out += _filled(f"{match[1]}// ", texts)
            at = end
        elif (match := ALONE.match(line)) and width(line) > COLUMNS:
            out += [f"{match[1]}/*", *_filled(f"{match[1]} * ", [match[2]]), f"{match[1]} */"]
            at += 1
        elif re.match(r"\t*/\*\*?$", line):
            indent = line[:line.index("/")]
            end = at + 1
            texts = []
            while end < len(lines) and (more := STARS.match(lines[end])) and more[1] == indent:
                texts.append(more[2][1:] if more[2] else "")
                end += 1
            out += [line, *_filled(f"{indent} * ", texts)]
            at = end
        else:
            out.append(line)
            at += 1
    return "\n".join(out)


def bare(source):
    """Returns the text of a source that formatting must not change: without white space, and without comment marks, whose number changes with filling."""
    return re.sub(r"[\s\\/*]", "", source)


def sources(tree):
    return [name for name in conventions._files(tree) if SOURCE.match(name) and not NOT_OURS.match(name) and (pathlib.Path(tree) / name).is_file()]


def _clang_format(tree, names, *options):
    """Runs clang-format on files; returns its diagnostics. Passes several files to each process, because most of the time is spent on starting it."""
    said = ""
    for first in range(0, len(names), AT_ONCE):
        done = subprocess.run([PROGRAM, "--style=file", *options, *names[first:first + AT_ONCE]], capture_output=True, text=True, check=True, cwd=tree)
        said += done.stderr
    return said


def format_tree(tree, names=None):
    """Formats all sources, or the given ones; returns the names of those that changed. Raises LabError without changing a file if more than its
    layout would change."""
    names = sources(tree) if names is None else names
    paths = {name: pathlib.Path(tree) / name for name in names}
    before = {name: path.read_text() for name, path in paths.items()}
    # Repeated, because each step can violate the other's rules: a comment that clang-format indents may become too wide.
    for _ in range(3):
        for path in paths.values():
            text = path.read_text()
            filled = fill_comments(text)
            if filled != text:
                path.write_text(filled)
        _clang_format(tree, names, "-i")
    changed = [name for name, path in paths.items() if path.read_text() != before[name]]
    wrong = [name for name in changed if bare(paths[name].read_text()) != bare(before[name])]
    for name in wrong:
        paths[name].write_text(before[name])
    if wrong:
        raise LabError(f"formatting would change more than the layout of {', '.join(wrong)}; these files were not changed")
    return changed


def complaints(tree, known=None):
    """Returns a message for each source that is not formatted. known: a file with the hashes of sources that have passed, which is updated."""
    if not shutil.which(PROGRAM):
        return [f"{PROGRAM}, which checks the layout of sources, is not installed: run scripts/setup"]
    style = (pathlib.Path(tree) / ".clang-format").read_bytes() + pathlib.Path(__file__).read_bytes()
    seen = set(known.read_text().split()) if known and known.is_file() else set()
    texts = {name: (pathlib.Path(tree) / name).read_text() for name in sources(tree)}
    keys = {name: hashlib.sha256(style + name.encode() + b"\0" + text.encode()).hexdigest() for name, text in texts.items()}
    fresh = [name for name in texts if keys[name] not in seen]
    said = _clang_format(tree, fresh, "--dry-run") if fresh else ""
    wrong = {name for name in fresh if f"{name}:" in said or fill_comments(texts[name]) != texts[name]}
    if known:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text("\n".join(sorted(key for name, key in keys.items() if name not in wrong)))
    return [f"{name} is not formatted according to .clang-format: run scripts/format" for name in sorted(wrong)]
