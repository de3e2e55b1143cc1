# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""What `make docs` renders (Sphinx): these pages, the kernel-doc of the public headers, and the manual pages."""
import pathlib
import subprocess
import sys

from docutils import nodes, statemachine
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
    """`.. kernel-doc:: include/rdma/ib_cm.h`: all that the header's comments describe, in its order."""

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
    """`.. manual:: weft.1`: a manual page of man/, as a terminal shows it."""

    required_arguments = 1

    def run(self):
        page = TREE / "Documentation/man" / self.arguments[0]
        self.env.note_dependency(str(page))
        source = subprocess.run([VERSION, "--manual", page], stdout=subprocess.PIPE, text=True, check=True).stdout
        # -cbou: without escape sequences and overstrikes.
        text = subprocess.run(["groff", "-man", "-K", "utf8", "-Tutf8", "-rLL=98n", "-P-cbou"], input=source, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [nodes.literal_block(text, text)]


def ask_for_every_page(app):
    """A manual page is in the HTML."""
    shown = (TREE / "Documentation/manual.rst").read_text()
    for page in sorted((TREE / "Documentation/man").iterdir()):
        if f".. manual:: {page.name}\n" not in shown:
            logging.getLogger(__name__).warning("%s is not on the page manual.rst", page.name)


def ask_for_every_header(app):
    """A public header that says something of itself is on some page."""
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
    return {"parallel_read_safe": True}
