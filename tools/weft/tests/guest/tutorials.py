# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Documentation/tutorials.rst, done as it is written: each command succeeds, and what stands below it is in what it says."""
import os
import pathlib
import re
import subprocess
import tempfile

from lab import cache
from lab.testing import test

PAGE = cache.TREE / "Documentation/tutorials.rst"
DONE = "weft-tutorial-done"


def commands_of(title):
    """[(command, [text that it says])] of a tutorial."""
    sections = re.split(r"^(.+)\n=+\n", PAGE.read_text(), flags=re.MULTILINE)
    text = dict(zip(sections[1::2], sections[2::2]))[title]
    commands = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            commands.append((line[6:], []))
        elif line.startswith("    > "):
            commands[-1] = (f"{commands[-1][0]}\n{line[6:]}", commands[-1][1])
        elif line.startswith("    ") and line.strip():
            commands[-1][1].append(line.strip())
    assert commands, f"the tutorial {title} has no command"
    return commands


class Shell:
    """A user's shell: what it says of a command, and its status."""

    def __init__(self, directory, program):
        environment = {**os.environ, "PATH": f"{pathlib.Path(program).parent}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(directory)}
        self._bash = subprocess.Popen(["bash"], cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        # The command reads nothing, or it would read the next one.
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\necho; echo {DONE} $?\n")
        self._bash.stdin.flush()
        said = []
        for line in self._bash.stdout:
            if line.startswith(DONE):
                return "".join(said), int(line.split()[1])
            said.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def close(self):
        self._bash.stdin.close()
        self._bash.wait()


def follow(lab, *titles):
    """Each in a folder of its own. A lab that one leaves to the next is brought up and down once."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        shell = Shell(pathlib.Path(folder), lab.program("weft"))
        try:
            up = False
            for title in titles:
                for command, says in commands_of(title):
                    if command == "weft lab up" and up or command == "weft lab down" and title != titles[-1]:
                        continue
                    up |= command == "weft lab up"
                    said, status = shell.run(command)
                    print(f"$ {command}\n{said}", flush=True)
                    assert status == 0, f"{title}: status {status} of: {command}\n{said}"
                    for text in says:
                        assert text in said, f"{title}: no '{text}' in what this says: {command}\n{said}"
        finally:
            shell.run("weft lab down")
            shell.close()


@test(kernels=("stock",), timeout=300)
def first_steps(lab):
    """One lab for five of them: what all who come here want to see work."""
    follow(lab, "Your first lab", "Break a link", "Crash a guest", "Watch MADs in Wireshark", "Debug a ULP", "Your own subnet manager")


@test(kernels=(), also=("stock",), timeout=300)
def four_guests(lab):
    """The one that takes a lab of its own."""
    follow(lab, "Open MPI on 4 nodes")


@test(kernels=("stock",), timeout=20)
def all_tutorials(_):
    """A tutorial that no test follows is not one."""
    titles = set(re.findall(r"^(.+)\n=+\n", PAGE.read_text(), flags=re.MULTILINE)) - {"Tutorials"}
    followed = set(re.findall(r'"([A-Z][\w ]+)"[,)]', pathlib.Path(__file__).read_text()))
    assert titles == followed, titles ^ followed
