# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the commands of README.md that start a lab."""
import pathlib
import re

from lab import cache
from lab.testing import test

from pages import Shell

README = cache.TREE / "README.md"
MOST_LINES = 120


def commands():
    """Returns the commands of the section "Try it", without their comments."""
    section = re.search(r"^## Try it\n(.*?)^## ", README.read_text(), re.MULTILINE | re.DOTALL)[1]
    return [line.split(" # ")[0].strip() for line in section.splitlines() if line.startswith("    ")]


@test(kernels=("stock",), timeout=120)
def commands_of_the_readme_work(lab):
    """The second command runs a program on weft's stack, without a setting. All commands that need no kernel or test of the user's exit with status 0; a
    shell reads its commands from standard input, and has none here."""
    listed = commands()
    assert listed[0] == "scripts/setup demo && make demo", listed
    assert re.match(r"build/bin/weft run --stack weft .*-- \S", listed[1]), listed
    ours = [command for command in listed if command.startswith("build/bin/weft ") and "~/" not in command]
    assert len(ours) == 3 and ours[0] == listed[1], ours
    shell = Shell(pathlib.Path(lab.directory), lab.program("weft"))
    try:
        for command, text in zip(ours, (" 0% packet loss", "PORT_ACTIVE", "")):
            said, status = shell.run(command.removeprefix("build/bin/"))
            print(f"$ {command}\n{said}", flush=True)
            assert status == 0 and text in said, f"status {status} of: {command}\n{said}"
    finally:
        shell.close()


@test(kernels=("stock",), timeout=20)
def readme_is_short_and_has_pictures(_):
    """README.md has fewer than 120 lines, and shows the web page, weft top, a capture and the demonstration. The pictures exist."""
    text = README.read_text()
    assert text.count("\n") < MOST_LINES, text.count("\n")
    pictures = re.findall(r"^!\[[^\]]+\]\((\S+)\)$", text, re.MULTILINE)
    assert {pathlib.Path(path).name for path in pictures} == {"web-lab.png", "top.svg", "capture.svg", "demo.svg"}, pictures
    for path in pictures:
        assert (README.parent / path).is_file(), path
