#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks that a manual page documents exactly the commands and options of its program.

    manual_test.py PROGRAM PAGE
"""
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def text_of(page):
    """Returns the text of a troff page, without its markup."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r'^\.\\".*$', "", text, flags=re.MULTILINE)
    text = re.sub(r"\\f.", "", text).replace("\\-", "-").replace('"', "")
    return re.sub(r"[ \n]+", " ", text)


def described(program, commands):
    """The help of a command: its options, and the commands below it."""
    text = subprocess.run([program, *commands, "--help"], capture_output=True, text=True, check=True).stdout
    _, _, below = text.partition("\nSubcommands:\n")
    # The list of subcommands is indented; descriptions that were broken are indented further.
    names = re.findall(r"^  ([a-z][a-z-]*)", below.split("\n\n")[0], re.MULTILINE)
    options = set(OPTION.findall(re.sub(r"`[^`]*`", "", text.split("\nSubcommands:\n")[0])))
    return options, names


def everything(program, commands=()):
    """Yields (commands, options) for the program and all its subcommands."""
    options, names = described(program, commands)
    yield commands, options
    for name in names:
        yield from everything(program, (*commands, name))


def main(program, page):
    text = text_of(page)
    written = set(OPTION.findall(text))
    faults = []
    known = set()
    found = list(everything(program))
    if not found[0][1] - {"--help"}:
        faults.append("--help was not understood")
    leaves = [commands for commands, _ in found if not any(other[:-1] == commands for other, _ in found if other)]
    for commands, options in found:
        known |= options
        if commands in leaves and " ".join(commands) not in text:
            faults.append(f"the command '{' '.join(commands)}' is not in the manual")
    known.discard("--help")
    faults += [f"{option} is not in the manual" for option in sorted(known - written)]
    faults += [f"{option} is in the manual, but not in the program" for option in sorted(written - known - {"--help"})]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
