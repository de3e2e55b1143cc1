# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes the modules of `weft lab` and `weft run` importable, and gives each test case a folder of its own."""
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]
SESSION = HERE.parent / "session/weft-session"


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-session-")))

    def write(self, path, data=b""):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path
