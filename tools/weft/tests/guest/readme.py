# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the commands of README.md that start a lab work as written."""
import contextlib
import os
import pathlib
import pty
import re
import subprocess

from lab import cache
from lab.testing import test

from pages import Shell, user_environment

README = cache.TREE / "README.md"
MOST_LINES = 120


def commands():
    """Returns the commands of the section "Try it", without their comments."""
    section = re.search(r"^## Try it\n(.*?)^## ", README.read_text(), re.MULTILINE | re.DOTALL)[1]
    return [line.split(" # ")[0].strip() for line in section.splitlines() if line.startswith("    ")]


def typed_into(command, directory, program, text):
    """Runs a command on a pseudo-terminal, and types the text when a shell prompts for it; returns the output and the status."""
    near, far = pty.openpty()
    environment = {**user_environment(directory, program), "TERM": "dumb"}
    process = subprocess.Popen(["bash", "-c", command], cwd=directory, env=environment, stdin=far, stdout=far, stderr=far, start_new_session=True)
    os.close(far)
    said = b""
    with open(near, "r+b", buffering=0) as terminal, contextlib.suppress(OSError):     # EIO: the command has exited
        while not said.endswith(b"# "):
            said += terminal.read(4096)
        terminal.write(f"{text}\n".encode())
        while piece := terminal.read(4096):
            said += piece
    return said.decode(errors="replace"), process.wait()


@test(kernels=("stock",), timeout=120)
def commands_of_the_readme_exit_with_status_0(lab):
    """The second command runs a program on weft's stack, without a setting. All commands that need no kernel or test of the user's exit with status 0. A
    shell on a terminal has a terminal in the guest, and its exit status is that of weft."""
    listed = commands()
    assert listed[0] == "scripts/setup demo && make demo", listed
    assert re.match(r"build/bin/weft run --stack weft .*-- \S", listed[1]), listed
    ours = [command for command in listed if command.startswith("build/bin/weft ") and "~/" not in command]
    assert len(ours) == 3 and ours[0] == listed[1], ours
    shell = Shell(pathlib.Path(lab.directory), lab.program("weft"))
    try:
        for command, text in zip(ours, (" 0% packet loss", "PORT_ACTIVE")):
            said, status = shell.run(command.removeprefix("build/bin/"))
            print(f"$ {command}\n{said}", flush=True)
            assert status == 0 and text in said, f"status {status} of: {command}\n{said}"
    finally:
        shell.close()
    assert ours[2].endswith(" -- bash"), ours
    said, status = typed_into(ours[2].removeprefix("build/bin/"), lab.directory, lab.program("weft"), "tty; stty size; exit 9")
    assert status == 9 and re.search(r"^/dev/pts/\d+\r$", said, re.MULTILINE), f"status {status}:\n{said}"


@test(kernels=("stock",), timeout=20)
def readme_has_fewer_than_120_lines_and_its_pictures_exist(_):
    """README.md has fewer than 120 lines, and shows the web page, weft top, a capture and the demonstration. The pictures exist."""
    text = README.read_text()
    assert text.count("\n") < MOST_LINES, text.count("\n")
    pictures = re.findall(r"^!\[[^\]]+\]\((\S+)\)$", text, re.MULTILINE)
    assert {pathlib.Path(path).name for path in pictures} == {"web-lab.png", "top.svg", "capture.svg", "demo.svg"}, pictures
    for path in pictures:
        assert (README.parent / path).is_file(), path
