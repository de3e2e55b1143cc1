# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The documents and the comments of public headers render without warnings: malformed tables, headers on no page and broken links fail the build."""
import os
import subprocess
import unittest

from lab import cache


class Render(unittest.TestCase):
    def test_all_pages_render_without_warnings(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(["make", "--no-print-directory", "docs"], cwd=cache.TREE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
