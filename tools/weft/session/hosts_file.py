# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses the file of the option `--hosts`. It has a line for each host that runs a part of a lab, with its own weftd. Such a part is called a place.
"""
import dataclasses
import ipaddress
import re

from lab.errors import LabError

MOST_BYTES = 64 << 10
# A host may be anything that ssh accepts, such as user@host, and must not look like an option.
HOST = re.compile(r"[A-Za-z0-9_\[\]:@.%+][A-Za-z0-9_\[\]:@.%+-]{0,254}")
# The names of places are names of nodes in the lab file.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
# Files that are copied from one host to another.
FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.+-]{0,127}")


@dataclasses.dataclass(frozen=True)
class Line:
    """name: of the place, or None if the order decides; address, port: where the trunks of other places reach this host, or None."""

    name: str | None
    host: str
    address: str | None
    port: int | None = None


def split(text):
    """Returns (numeric address, port or None) of ADDRESS or ADDRESS:PORT, where an IPv6 address with a port is in brackets; None if it is neither."""
    if address := numeric(text[1:-1] if text.startswith("[") and text.endswith("]") else text):
        return address, None
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:]+)):([0-9]{1,5})", text)
    address = match and numeric(match[1] or match[2])
    return (address, int(match[3])) if address and 0 < int(match[3]) < 65536 else None


def together(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def numeric(text):
    """Returns a numeric address of one host, as text; None if it is something else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A scope ID ("fe80::1%eth0") is valid on one host only.
    return None if address.is_multicast or address.is_unspecified or getattr(address, "scope_id", None) else str(address)


def parse(text, source):
    """Returns the lines of a file. source: its name, for messages."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue

        def fail(what, number=number):
            raise LabError(f"{source}:{number}: {what}", "a line is [NAME=]HOST [ADDRESS[:PORT]]")

        if len(words) > 2:
            fail("too many words")
        name, equals, host = words[0].rpartition("=")
        if equals and not NAME.fullmatch(name):
            fail(f"'{name}' is not a name of a place")
        if not HOST.fullmatch(host):
            fail(f"'{host}' is not a host")
        address = split(words[1]) if len(words) > 1 else (None, None)
        if not address:
            fail(f"'{words[1]}' is not a numeric address, with or without a port")
        lines.append(Line(name or None, host, *address))
    if not lines:
        raise LabError(f"{source} has no host", "a line is [NAME=]HOST [ADDRESS[:PORT]]")
    named = [line.name for line in lines if line.name]
    if twice := {name for name in named if named.count(name) > 1}:
        raise LabError(f"{source}: two hosts have the place {sorted(twice)[0]}")
    return lines


def read(path):
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LabError(f"{path} is longer than {MOST_BYTES} bytes")
    return parse(data.decode(errors="replace"), path)


def assign(lines, places, source):
    """Returns the line of each place, by its name. Lines with a name are for that place; the others are for the remaining places, in order."""
    unknown = [line.name for line in lines if line.name and line.name not in places]
    if unknown:
        raise LabError(f"{source}: the lab has no place {unknown[0]}", f"it has {', '.join(places)}")
    found = {line.name: line for line in lines if line.name}
    others = iter([line for line in lines if not line.name])
    for place in places:
        if place not in found and (line := next(others, None)):
            found[place] = line
    missing = [place for place in places if place not in found]
    if missing:
        raise LabError(f"{source} has no host for the place {missing[0]}", f"the lab has {len(places)} places")
    return {place: found[place] for place in places}
