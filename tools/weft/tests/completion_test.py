#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that bash's completion of weft offers every command, option and value that --help prints.

    completion_test.py WEFT
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from manual_test import everything

HERE = pathlib.Path(__file__).resolve().parent
COMPLETION = HERE.parents[2] / "debian/completion/weft"
# Completes lines of words, separated by tabs; prints a line for each, with the words that are offered, or "files".
SCRIPT = f"""
. {COMPLETION}
compopt() {{ files=files; }}
while IFS= read -r line; do
	mapfile -t COMP_WORDS < <(tr '\\t' '\\n' <<<"$line")
	COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMPREPLY=() files=''
	_weft
	echo "${{COMPREPLY[*]}}$files"
done
"""
FILES = ["files"]
SET = re.compile(r"^ +(?:-.,)?(--[a-z-]+) .*?\{([a-z][^}]*)\}", re.MULTILINE)


class ShellCompletion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = {command: cls.options_of(command) for command, _ in everything(WEFT)}

    @staticmethod
    def options_of(command):
        _, _, text = subprocess.run([WEFT, *command, "--help"], capture_output=True, text=True, check=True).stdout.partition("\nOptions:\n")
        names = re.findall(r"^  (-\S+)", text.partition("\n\n")[0], re.MULTILINE)
        return {name for each in names for name in each.split(",") if name.startswith("--")}

    def complete(self, *lines):
        """Returns the words that are offered for each line; its last word is the one to complete."""
        text = "".join("\t".join(["weft", *words]) + "\n" for words in lines)
        done = subprocess.run(["bash", "--norc", "-c", SCRIPT], input=text, capture_output=True, text=True, check=True, timeout=300,
                              env={**os.environ, "PATH": f"{WEFT.parent}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return [sorted(line.split()) for line in done.stdout.splitlines()]

    def test_shell_completion_offers_every_option(self):
        self.assertGreater(len(self.commands), 30)
        offered = self.complete(*((*command, "-") for command in self.commands))
        for (command, options), words in zip(self.commands.items(), offered, strict=True):
            self.assertEqual(words, sorted(options), command)
        # An earlier list, which was maintained by hand, lacked these options.
        self.assertLessEqual({"--out", "--capture", "--weftd"}, {word for words in offered for word in words})

    def test_shell_completion_offers_every_command(self):
        offered = self.complete(*((*command, "") for command in self.commands))
        for command, words in zip(self.commands, offered, strict=True):
            below = sorted(other[-1] for other in self.commands if other and other[:-1] == command)
            self.assertEqual(words, below or FILES, command)

    def test_shell_completion_offers_the_fixed_values_of_options(self):
        asked, expected = [], []
        for command in self.commands:
            text = subprocess.run([WEFT, *command, "--help"], capture_output=True, text=True, check=True).stdout
            for option, values in SET.findall(text):
                asked.append((*command, option, ""))
                expected.append(sorted(values.split(",")))
        self.assertGreater(len(asked), 5)
        self.assertEqual(self.complete(*asked), expected)

    def test_shell_completion_offers_file_names_for_options_without_known_values(self):
        self.assertEqual(self.complete(("--socket-dir", ""), ("run", "--logs", ""), ("run", "--lab", ""), ("hunt", "reduce", "x", "--out", ""), ("lab", "upgrade", "--weftd", ""),
                                       ("capture", "node1", "-w", ""), ("capture", "node1", "--write", ""), ("run", "--", ""), ("lab", "shell", "node1", "")), [FILES] * 9)

    def test_shell_completion_offers_commands_after_global_options(self):
        root, lab = (sorted(other[-1] for other in self.commands if other and other[:-1] == command) for command in ((), ("lab",)))
        self.assertEqual(self.complete(("--json", ""), ("--socket-dir", "/x", ""), ("--json", "lab", ""), ("--socket-dir", "lab", "--json", "lab", ""), ("lab", "u"), ("--json", "run", "--quie")),
                         [root, root, lab, lab, ["up", "upgrade"], ["--quiet"]])

    def test_shell_completion_after_an_unknown_command_offers_all_commands(self):
        self.assertEqual(self.complete(("nonsense", "-")), [sorted(self.commands[()])])


if __name__ == "__main__":
    WEFT = pathlib.Path(sys.argv.pop()).resolve()
    unittest.main()
