# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides the function that runs the commands of a documentation page, and checks that their output contains what the page shows."""
import os
import pathlib
import re
import subprocess
import tempfile

DONE = "weft-page-done"


def sections(page):
    """Returns the sections of a page as {title: text}."""
    parts = re.split(r"^(.+)\n=+\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def commands_of(page, title):
    """Returns the commands of a section and the output that it shows: [(command, [text])]."""
    commands = []
    of_commands = False     # other blocks contain no commands
    for line in sections(page)[title].splitlines():
        if not line.startswith("    "):
            of_commands &= not line
        elif line.startswith("    $ "):
            of_commands = True
            commands.append((line[6:], []))
        elif line.startswith("    > ") or line == "    >":
            commands[-1] = (f"{commands[-1][0]}\n{line[6:]}", commands[-1][1])
        elif line.strip() and of_commands:
            commands[-1][1].append(line.strip())
    assert commands, f"the section {title} has no command"
    return commands


def user_environment(directory, program):
    """Returns the environment of a user who finds weft in PATH, and whose labs are in a directory."""
    return {**os.environ, "PATH": f"{pathlib.Path(program).parent}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(directory)}


class Shell:
    """A user's shell, which returns the output and the status of each command."""

    def __init__(self, directory, program):
        self._bash = subprocess.Popen(["bash"], cwd=directory, env=user_environment(directory, program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        # The command has no standard input, because it would otherwise read the next command.
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\nstatus=$?; echo; echo {DONE} $status\n")
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


def _succeed(shell, commands):
    for command in commands:
        said, status = shell.run(command)
        assert status == 0, f"status {status} of: {command}\n{said}"


def follow(lab, page, *titles, before=(), after=(), replaced=()):
    """Runs the commands of sections of a page in one folder, with commands before and after them; returns their output. A lab that several sections
    use is brought up and down once. replaced: pairs (text, other text) to replace in commands and in expected output, where the page lets a user
    choose."""
    def varied(text):
        for each, other in replaced:
            text = text.replace(each, other)
        return text

    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        shell = Shell(pathlib.Path(folder), lab.program("weft"))
        try:
            _succeed(shell, before)
            everything = []
            up = False
            for title in titles:
                for command, says in commands_of(page, title):
                    command = varied(command)
                    if command == "weft lab up" and up or command == "weft lab down" and title != titles[-1]:
                        continue
                    up |= command == "weft lab up"
                    said, status = shell.run(command)
                    print(f"$ {command}\n{said}", flush=True)
                    everything.append(said)
                    assert status == 0, f"{title}: status {status} of: {command}\n{said}"
                    for text in map(varied, says):
                        assert text in said, f"{title}: no '{text}' in what this says: {command}\n{said}"
            _succeed(shell, after)
            return "".join(everything)
        finally:
            shell.run("weft lab down")
            shell.close()
