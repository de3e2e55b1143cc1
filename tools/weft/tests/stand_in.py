# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a stub of the program weft, which records its arguments, for tests of programs that call weft."""
import json
import pathlib
import tempfile
import unittest

# A file in the stub's directory makes it fail in one way: `report`, `dead`, `no-up`; with `no-guests` the fabric has no guests.
STAND_IN = """#!/usr/bin/python3
import json, os, pathlib, sys
own = pathlib.Path(__file__).parent
words = sys.argv[3:]
with open(own / "asked", "a") as asked:
    asked.write(json.dumps(words) + "\\n")
if words[0] == "--json":
    link = {"name": "a/1-s/1", "ends": ["a/1", "s/1"], "settings": {"loss": "0", "delay": "1ms"}}
    print(json.dumps({"fabric": {"hosts": [{"name": "a", "socket": None if (own / "no-guests").exists() else "a.sock"}], "links": [link]}, "counters": {words[-1]: {"symbol_errors": 3}}}[words[1]]))
elif words[:2] == ["lab", "up"] and "--bogus" in words:
    print("weft lab up has no option '--bogus'", file=sys.stderr)
    sys.exit(2)
elif words[:2] == ["lab", "up"] and (own / "no-up").exists():
    sys.exit("weft: there is no card")
elif words[:2] == ["lab", "check"]:
    for name, status in (("report", 125), ("dead", 126)):
        if (own / name).exists():
            (own / name).unlink()
            print(f"the kernel of a: {name}", file=sys.stderr)
            sys.exit(status)
elif words[:2] == ["lab", "console"]:
    print("last words of the kernel")
elif words[:2] == ["lab", "shell"]:
    os.execvp("bash", ["bash", "-c", words[4]])
elif words[0] == "attach":
    os.execvp(words[3], words[3:])
elif words[0] == "capture":
    print("capturing 1 links", file=sys.stderr, flush=True)
    import signal
    signal.pause()
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-pytest-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "weft"
        self.program.write_text(STAND_IN)
        self.program.chmod(0o755)

    def asked(self):
        """Returns the requests to the program, without the option for logs."""
        lines = [json.loads(line) for line in (self.folder / "asked").read_text().splitlines()]
        return [" ".join(word for word in words if not word.startswith("--logs=")) for words in lines]
