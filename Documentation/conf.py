# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Configures Sphinx for `make docs`, which renders these pages, the kernel-doc of the public headers, and the manual pages."""
import html
import json
import math
import pathlib
import subprocess
import sys

from docutils import nodes, statemachine
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "scripts"))
sys.dont_write_bytecode = True

from lab import kernel_doc  # noqa: E402

VERSION = TREE / "scripts/make/version"

project = "weft"
version = release = subprocess.run([VERSION], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
author = "the authors of weft"
extensions = ["sphinx.ext.graphviz"]
graphviz_output_format = "svg"
exclude_patterns = ["man"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "260px"}
html_static_path = ["static"]     # custom.css, which the theme looks for
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
primary_domain = "c"
highlight_language = "none"


class KernelDoc(SphinxDirective):
    """`.. kernel-doc:: include/rdma/ib_cm.h` renders the kernel-doc of a header, in its order."""

    required_arguments = 1

    def run(self):
        header = TREE / self.arguments[0]
        self.env.note_dependency(str(header))
        lines = statemachine.StringList()
        for block in kernel_doc.blocks(header.read_text()):
            for line in kernel_doc.render(block).splitlines() + [""]:
                lines.append(line, f"{self.arguments[0]} ({block.name})")
        parent = nodes.section()
        self.state.nested_parse(lines, self.content_offset, parent)
        return parent.children


class Manual(SphinxDirective):
    """`.. manual:: weft.1` renders a manual page of man/ as a terminal shows it."""

    required_arguments = 1

    def run(self):
        page = TREE / "Documentation/man" / self.arguments[0]
        self.env.note_dependency(str(page))
        source = subprocess.run([VERSION, "--manual", page], stdout=subprocess.PIPE, text=True, check=True).stdout
        # -cbou: without escape sequences and overstrikes.
        text = subprocess.run(["groff", "-man", "-K", "utf8", "-Tutf8", "-rLL=98n", "-P-cbou"], input=source, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [nodes.literal_block(text, text)]


class BenchPlot(SphinxDirective):
    """Draws the ratios of weft's figures to their references, as bars on a logarithmic scale:

        .. bench-plot::
           :better: smaller

           driver.post-send-rc  0.66  ``ib_post_send`` of an RC send, instructions

    Each line has the name of a figure, its ratio in the tables of the page, and a label. The ratio is that of build/bench.json instead, if
    `make bench` has measured the figure in this tree.
    """

    has_content = True
    option_spec = {"better": lambda word: directives.choice(word, ("smaller", "larger"))}
    ROW, LABEL, BARS, MARGIN = 24, 400, 460, 60

    def run(self):
        rows = [line.split(maxsplit=2) for line in self.content if line.strip()]
        measured = self._measured({name for name, _, _ in rows})
        ratios = [(label, measured.get(name, float(ratio))) for name, ratio, label in rows]
        source = "build/bench.json" if len(measured) == len(rows) else "the tables below"
        if 0 < len(measured) < len(rows):
            source += f"; {len(measured)} of {len(rows)} from build/bench.json"
        caption = f"Ratio of weft to its reference, on a logarithmic scale; {self.options['better']} is better. From {source}."
        return [nodes.raw("", self._svg(ratios), format="html"), nodes.paragraph(caption, caption)]

    def _measured(self, names):
        results = TREE / "build/bench.json"
        if not results.exists():
            return {}
        self.env.note_dependency(str(results))
        return {figure["name"]: figure["ratio"] for figure in json.loads(results.read_text())["figures"] if figure["name"] in names and figure["ratio"]}

    def _svg(self, ratios):
        powers = [math.log10(ratio) for _, ratio in ratios]
        low, high = min(math.floor(min(powers)), 0), max(math.ceil(max(powers)), 0)
        if high == low:
            high += 1
        height = self.ROW * (len(ratios) + 1)
        place = lambda power: self.LABEL + self.BARS * (power - low) / (high - low)  # noqa: E731
        parts = [f'<line x1="{place(power):.0f}" x2="{place(power):.0f}" y1="0" y2="{height - self.ROW}" stroke="{"#333" if power == 0 else "#ccc"}"/>'
                 f'<text x="{place(power):.0f}" y="{height - 7}" text-anchor="middle">{10.0 ** power:g}</text>' for power in range(low, high + 1)]
        for number, ((label, ratio), power) in enumerate(zip(ratios, powers)):
            left, right = sorted((place(0), place(power)))
            good = (ratio <= 1) == (self.options["better"] == "smaller")
            parts.append(f'<text x="{self.LABEL - 12}" y="{number * self.ROW + 16}" text-anchor="end">{html.escape(label)}</text>'
                         f'<rect x="{left:.1f}" y="{number * self.ROW + 4}" width="{max(right - left, 1):.1f}" height="{self.ROW - 8}" '
                         f'fill="{"#3b7dbd" if good else "#d1782f"}"/>'
                         f'<text x="{right + 5:.1f}" y="{number * self.ROW + 16}">{ratio:.3g}</text>')
        width = self.LABEL + self.BARS + self.MARGIN
        return (f'<svg viewBox="0 0 {width} {height}" role="img" style="max-width: {width}px; font: 13px sans-serif; margin-top: 1em">{"".join(parts)}</svg>')


def ask_for_every_page(app):
    """Warns of a manual page that is not in the HTML."""
    shown = (TREE / "Documentation/manual.rst").read_text()
    for page in sorted((TREE / "Documentation/man").iterdir()):
        if f".. manual:: {page.name}\n" not in shown:
            logging.getLogger(__name__).warning("%s is not on the page manual.rst", page.name)


def ask_for_every_header(app):
    """Warns of a public header with kernel-doc that is on no page."""
    pages = "".join(page.read_text() for page in (TREE / "Documentation").glob("*.rst"))
    for header in sorted((TREE / "include/rdma").glob("**/*.h")):
        name = str(header.relative_to(TREE))
        if any(kernel_doc.blocks(header.read_text())) and f".. kernel-doc:: {name}\n" not in pages:
            logging.getLogger(__name__).warning("%s is on no page: Documentation/api.rst lists the public headers", name)


def setup(app):
    app.connect("builder-inited", ask_for_every_header)
    app.connect("builder-inited", ask_for_every_page)
    app.add_directive("kernel-doc", KernelDoc)
    app.add_directive("manual", Manual)
    app.add_directive("bench-plot", BenchPlot)
    return {"parallel_read_safe": True}
