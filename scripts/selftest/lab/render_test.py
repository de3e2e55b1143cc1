# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the documents and the comments of public headers render without warnings: malformed tables, headers on no page and broken links fail the
build. Also tests that code blocks can be scrolled in a narrow window of a browser."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from lab import cache

HTML = cache.TREE / "build/docs/html"
NARROW = 600    # pixels: the width of a window beside a terminal
# Runs in the page; the title becomes the number of code blocks that are wider than the page, and of those whose right part cannot be reached.
COUNTS = """<script>addEventListener("load", () => {
    const blocks = [...document.querySelectorAll("pre")], wide = blocks.filter((block) => block.scrollWidth > block.clientWidth);
    const cut = blocks.filter((block) => block.getBoundingClientRect().right > innerWidth
        || block.scrollWidth > block.clientWidth && !["auto", "scroll"].includes(getComputedStyle(block).overflowX));
    document.title = `${wide.length} wide, ${cut.length} cut off`;
});</script>"""


def counts_of(page):
    """Returns how many code blocks of a rendered page are wider than a narrow window, and how many are cut off there."""
    with tempfile.TemporaryDirectory(prefix="weft-pages-") as folder:
        copy = pathlib.Path(folder) / "html"
        shutil.copytree(HTML, copy, ignore=shutil.ignore_patterns("_sources", "_images", "searchindex.js"))
        (copy / page).write_text((copy / page).read_text().replace("</head>", f"{COUNTS}</head>"))
        done = subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
                               f"--window-size={NARROW},900", "--dump-dom", f"file://{copy / page}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=True)
    wide, cut = done.stdout.split("<title>", 1)[1].split("</title>")[0].split(",")
    return int(wide.split()[0]), int(cut.split()[0])


class Render(unittest.TestCase):
    def test_pages_render_without_warnings_and_wide_code_blocks_can_be_scrolled(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(["make", "--no-print-directory", "docs"], cwd=cache.TREE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for page in ("quickstart.html", "recipes.html"):
            with self.subTest(page):
                wide, cut = counts_of(page)
                self.assertGreater(wide, 0, "the test needs a code block that is wider than the window")
                self.assertEqual(cut, 0, "code blocks that cannot be scrolled")


if __name__ == "__main__":
    unittest.main()
