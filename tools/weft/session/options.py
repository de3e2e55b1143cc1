# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses the options of a command of weft-session. The program weft has declared and checked these options before (tools/weft/lab_command.cpp), and
passes them as arguments."""
import json
import re


class Options:
    """The options of one command as attributes, and the words after `--` as `words`.

    NAME=TEXT is text, NAME:=JSON a value, and NAME+=TEXT one more of a list. An option that was not given is None.
    """

    def __init__(self, given):
        given = list(given)
        end = given.index("--") if "--" in given else len(given)
        self.words = given[end + 1:]
        for word in given[:end]:
            name, kind, text = re.fullmatch(r"([a-z_]+)(=|:=|\+=)(.*)", word, re.DOTALL).groups()
            if kind == "+=":
                self.__dict__.setdefault(name, []).append(text)
            else:
                self.__dict__[name] = json.loads(text) if kind == ":=" else text

    def __getattr__(self, name):
        return None
