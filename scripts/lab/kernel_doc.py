# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Kernel-doc comments: what they say of a declaration, and the same as reStructuredText for `make docs`.

A comment that begins with two stars describes what follows it:

    /**
     * NAME - what it is                      or "struct NAME - …"
     * @argument: what it is
     *
     * Text. Context: where it may be called. Return: what it returns.
     */
"""
import dataclasses
import re

BLOCK = re.compile(r"^/\*\*\n(.*?)^ \*/\n([^;{]*)", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r"(?:(struct|enum|union) )?(\w+)(?:\(\))? - (.*)", re.DOTALL)
ARGUMENT = re.compile(r"@(\w+|\.\.\.):\s*(.*)", re.DOTALL)


@dataclasses.dataclass
class Block:
    """One comment. kind: struct, enum, union, or empty: a function, a macro or a type."""
    kind: str
    name: str
    summary: str
    arguments: dict     # name: text, in order
    text: str           # paragraphs
    declaration: str    # what follows, up to the first ; or {, in one line


def _parse(comment, declaration):
    lines = [line.removeprefix(" *").removeprefix(" ").rstrip() for line in comment.splitlines()]
    # The title and the arguments go on until the next argument or an empty line; the rest is text.
    entries, at = [], 0
    while at < len(lines) and (lines[at] or at + 1 < len(lines) and lines[at + 1].startswith("@")):
        if lines[at].startswith("@") or not entries:
            entries.append(lines[at])
        elif lines[at]:
            entries[-1] += "\n" + lines[at]
        at += 1
    title = TITLE.fullmatch(entries[0]) if entries else None
    if not title:
        return None
    kind, name, summary = title.groups()
    arguments = {match[1]: " ".join(match[2].split()) for match in map(ARGUMENT.fullmatch, entries[1:]) if match}
    return Block(kind or "", name, " ".join(summary.split()), arguments, "\n".join(lines[at:]).strip("\n"), " ".join(declaration.split()))


def blocks(text):
    """Yields the comments of a header, in order. A comment with two stars and no title is a mistake, and raises ValueError."""
    for comment, declaration in BLOCK.findall(text):
        block = _parse(comment, declaration)
        if not block:
            raise ValueError(f"a comment with two stars has no title: {comment.strip()[:60]}")
        yield block


def _inline(text):
    """Plain text as markup: nothing in it is markup but @argument, function() and constants, which become literals."""
    words = re.split(r"(@\w+|\b\w+\(\)|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b)", text)
    return "".join(f"``{word.removeprefix('@')}``" + ("\\ " if after[:1].isalnum() else "") if at % 2 else
                   re.sub(r"([\\*`|])", r"\\\1", re.sub(r"_(?!\w)", r"\\_", word))
                   for at, (word, after) in enumerate(zip(words, words[1:] + [""])))


def _paragraphs(text):
    """The text's paragraphs as markup; what is indented stands as it is; Context and Return have paragraphs of their own."""
    for paragraph in re.split(r"\n{2,}", text):
        if not paragraph.strip():
            continue
        if all(line[:1] in " \t" for line in paragraph.splitlines()):
            yield "::\n\n" + "\n".join("   " + line.expandtabs() for line in paragraph.splitlines())
            continue
        for part in re.split(r"\s(?=(?:Context|Returns?):)", " ".join(paragraph.split())):
            name = re.match(r"(Context|Returns?): ", part)
            yield f"**{name[1]}:** {_inline(part[name.end():])}" if name else _inline(part)


def _directive(block):
    declaration = re.sub(r"^(RDMA_MUST_CHECK |static |inline |extern |constexpr )*", "", block.declaration)
    if block.kind:
        return f"c:{block.kind}:: {block.name}"
    if declaration.startswith("#define"):
        return f"c:macro:: {block.name}"
    if declaration.startswith("typedef"):
        return f"c:type:: {block.name}"
    return f"c:function:: {declaration}"


def render(block):
    """The block as reStructuredText."""
    parts = [_inline(block.summary[:1].upper() + block.summary[1:]) + "."]
    if block.arguments:
        parts.append("\n".join(f"``{name}``\n   {_inline(text) or chr(92)}" for name, text in block.arguments.items()))
    parts += _paragraphs(block.text)
    body = "\n\n".join(parts)
    return f".. {_directive(block)}\n\n" + "\n".join("   " + line if line else "" for line in body.splitlines()) + "\n"
