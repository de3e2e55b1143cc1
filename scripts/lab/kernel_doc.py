# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses kernel-doc comments, checks them against the declarations, and converts them to reStructuredText for `make docs`.

A comment that begins with two stars describes the declaration that follows it:

    /**
     * NAME - what it is                      or "struct NAME - …"
     * @argument: what it is
     *
     * Text. Context: where it may be called. Return: what it returns.
     */

A comment inside a structure, indented by a tab, describes the method (a pointer to a function) that follows it. Members of a nested structure or
union that has a name are described as `@outer.inner`.

complaints() is the check of `make check-tree`: it reports declarations of the headers that have no description.
"""
import dataclasses
import re

BLOCK = re.compile(r"^(\t?)/\*\*\n(.*?)^\1 \*/\n(#define (?:[^\n]*\\\n)*[^\n]*|[^;{]*)", re.DOTALL | re.MULTILINE)
STRUCTURE = re.compile(r"^(?:struct|union) (\w+) \{", re.MULTILINE)
TITLE = re.compile(r"(?:(struct|enum|union) )?(\w+)(?:\(\))? -\s*(.*)", re.DOTALL)
ARGUMENT = re.compile(r"@([\w.]+):\s*(.*)", re.DOTALL)
METHOD = re.compile(r"\(\*(\w+)\)\(")
# Declarations in headers for macros and debug builds that share one comment.
NOT_FOR_USE = re.compile(r"ib_checked_")


@dataclasses.dataclass
class Block:
    """One comment. kind: struct, enum, union, method, or empty for a function, a macro or a type."""
    kind: str
    name: str           # for a method: STRUCTURE.METHOD
    summary: str
    arguments: dict     # name: text, in order
    text: str           # paragraphs
    declaration: str    # the following declaration up to the first ; or {, in one line


def _parse(comment, declaration):
    lines = [line.removeprefix(" *").removeprefix(" ").rstrip() for line in comment.splitlines()]
    # The title and the arguments continue until the next argument or an empty line; the rest is text.
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
    for found in BLOCK.finditer(text):
        indent, comment, declaration = found.groups()
        block = _parse(re.sub(r"^\t", "", comment, flags=re.MULTILINE) if indent else comment, declaration)
        if not block:
            raise ValueError(f"a comment with two stars has no title: {comment.strip()[:60]}")
        if indent:
            structure = [inside[1] for inside in STRUCTURE.finditer(text, 0, found.start())]
            block.kind, block.name = "method", f"{structure[-1] if structure else ''}.{block.name}"
        yield block


def _inline(text):
    """Converts plain text to markup: @argument, function() and constants become literals, and everything else is escaped."""
    words = re.split(r"(@\w+|\b\w+\(\)|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b)", text)
    return "".join(f"``{word.removeprefix('@')}``" + ("\\ " if after[:1].isalnum() else "") if at % 2 else
                   re.sub(r"([\\*`|])", r"\\\1", re.sub(r"_(?!\w)", r"\\_", word))
                   for at, (word, after) in enumerate(zip(words, words[1:] + [""])))


def _paragraphs(text):
    """Converts the text's paragraphs to markup. Indented lines are kept, and Context and Return are separate paragraphs."""
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
    declaration = re.sub(r"^(template<[^>]*> |RDMA_MUST_CHECK |static |inline |extern |constexpr )*", "", block.declaration)
    if block.kind == "method":
        return "c:member:: " + METHOD.sub(f"(*{block.name})(", declaration, count=1)
    if block.kind:
        return f"c:{block.kind}:: {block.name}"
    if declaration.startswith("#define"):
        return f"c:macro:: {block.name}"
    if declaration.startswith("typedef"):
        return f"c:type:: {block.name}"
    return f"c:function:: {declaration}"


def render(block):
    """Returns the block as reStructuredText."""
    parts = [_inline(block.summary[:1].upper() + block.summary[1:]) + "."]
    if block.arguments:
        parts.append("\n".join(f"``{name}``\n   {_inline(text) or chr(92)}" for name, text in block.arguments.items()))
    parts += _paragraphs(block.text)
    body = "\n\n".join(parts)
    return f".. {_directive(block)}\n\n" + "\n".join("   " + line if line else "" for line in body.splitlines()) + "\n"


@dataclasses.dataclass
class Declared:
    """A declaration of a header. kind: function, struct, union. parts: names of arguments or members; methods: declarations of pointers to functions."""
    kind: str
    name: str
    text: str
    parts: list
    methods: dict


def arguments(declaration):
    """Returns the names of a function's arguments."""
    depth, found, this = 0, [], ""
    for letter in declaration.split("(", 1)[1]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0 or (letter == "," and depth == 0):
            found.append(this)
            this = ""
            if depth < 0:
                break
        else:
            this += letter
    names = (re.search(r"\(\*(\w+)\)", argument) or re.search(r"(\w+)(?:\[\w*\])?\s*$", argument) for argument in found)
    return [name[1] for name in names if name and name[1] != "void"]


def _statements(code):
    """Yields (text before the body or the semicolon, body or None, text between the body and the semicolon) of declarations that are not inside other
    braces."""
    at = 0
    while match := re.compile(r"[;{}]").search(code, at):
        head = " ".join(code[at:match.start()].split())
        at = match.end()
        if match[0] != "{" or re.match(r"(inline )?namespace\b|extern \"C\"$", head):
            if match[0] == ";":
                yield head, None, ""
            continue
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        body, tail = code[match.end():at - 1], ""
        if re.search(r"(?:^|\s)(?:struct|union|enum)(?: \w+)?$", head):
            end = code.index(";", at)
            tail, at = " ".join(code[at:end].split()), end + 1
        yield head, body, tail


def _members(body):
    """Yields (name, declaration) of the members of a structure; members of named nested ones are OUTER.INNER."""
    for head, inner, tail in _statements(body):
        if inner is None:
            name = METHOD.search(head) or re.search(r"(\w+)(?:\[[^]]*\])*$", head)
            if name:
                yield name[1], head
        elif not head.startswith("enum"):
            outer = re.match(r"\w+", tail)
            yield from ((f"{outer[0]}.{name}" if outer else name, declaration) for name, declaration in _members(inner))


def declarations(text):
    """Yields the functions and structures that a header declares for its users, in order."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", code, flags=re.MULTILINE)
    code = re.sub(r"\bRDMA_(?:C_BEGIN|C_END|MUST_CHECK)\b", "", code)
    for head, body, _ in _statements(code):
        if aggregate := re.fullmatch(r"(struct|union) (\w+)", head):
            if body is not None:
                members = dict(_members(body))
                yield Declared(aggregate[1], aggregate[2], head, list(members), {name: member for name, member in members.items() if METHOD.search(member)})
        elif not re.match(r"(?:typedef|enum|using)\b", head) and (function := re.match(r"[^(=]*[\s*&](\w+)\(", head)):
            if not NOT_FOR_USE.match(function[1]):
                yield Declared("function", function[1], head, arguments(head), {})


def _of_function(what, block, declaration):
    """Returns what is missing from the description of a function or a method."""
    if not block:
        return [f"{what} has no kernel-doc"]
    parts = arguments(re.sub(r"^([^(]*)\(\*(\w+)\)\(", r"\1\2(", declaration))
    lacks = [f"{what} does not describe @{name}" for name in parts if not block.arguments.get(name)]
    lacks += [f"{what} describes @{name}, which it does not have" for name in block.arguments if name not in parts]
    if not re.search(r"\bContext:\s", block.text):
        lacks.append(f"{what} does not describe its context (\"Context:\")")
    if not re.match(r"(?:static |inline )*void [\w(]", declaration) and not re.search(r"\bReturns?:\s", block.text):
        lacks.append(f"{what} does not describe its return value (\"Return:\")")
    if not block.summary:
        lacks.append(f"{what} has no summary")
    return lacks


def complaints(headers):
    """Returns the declarations of {path: text} that have no description: functions, structures with their members, and each method of a structure *_ops."""
    described = {(block.kind, block.name): block for text in headers.values() for block in blocks(text)}
    found = []
    for path, text in headers.items():
        for declared in declarations(text):
            if declared.kind == "function":
                # A function that takes its caller's name, or that serves several functions, is called by a documented wrapper without the
                # underscores.
                block, name = described.get(("", declared.name.removeprefix("__"))), declared.name.removeprefix("__")
                lacks = _of_function(f"{name}()", block, declared.text) if name == declared.name or not block else []
                if block and name not in block.declaration:
                    lacks = [f"the comment of {name}() is before something else"]
            else:
                block, what = described.get((declared.kind, declared.name)), f"{declared.kind} {declared.name}"
                as_methods = declared.methods if declared.name.endswith("_ops") else {}
                if block:
                    lacks = [f"{what} does not describe @{name}" for name in declared.parts if name not in as_methods and not block.arguments.get(name)]
                    lacks += [f"{what} describes @{name}, which it does not have" for name in block.arguments if name not in declared.parts]
                else:
                    lacks = [f"{what} has no kernel-doc"]
                for name, method in as_methods.items():
                    lacks += _of_function(f"{declared.name}.{name}", described.get(("method", f"{declared.name}.{name}")), method)
            found += [f"{path}: {lack}" for lack in lacks]
    return found
