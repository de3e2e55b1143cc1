# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the commands of Documentation/tutorials.rst work as written and print what the page shows."""
import pathlib
import re

from lab import cache
from lab.testing import test

from pages import follow, sections

PAGE = cache.TREE / "Documentation/tutorials.rst"
EXAMPLES = cache.TREE / "tools/weft/examples"


@test(kernels=("stock",), timeout=300)
def first_seven_tutorials_produce_the_output_shown_in_the_documentation(lab):
    """The first seven tutorials, which share one lab, produce the output that the page shows."""
    follow(lab, PAGE, "Your first lab", "Your first verbs program", "Break a link", "Crash a guest", "Watch MADs in Wireshark", "Debug a ULP", "Your own subnet manager")


@test(kernels=(), also=("stock",), timeout=300)
def example_lab_files_produce_the_output_that_their_tutorial_shows(lab):
    """The tutorial about the example lab files, with the files of the source tree, produces the output that the page shows."""
    follow(lab, PAGE, "Labs from example files", replaced=(("/usr/share/doc/weft/examples", str(EXAMPLES)),))


@test(kernels=(), also=("stock",), timeout=300)
def open_mpi_runs_on_four_guests(lab):
    """The tutorial about Open MPI, which needs its own lab, produces the output that the page shows."""
    follow(lab, PAGE, "Open MPI on 4 nodes")


@test(kernels=("stock",), timeout=20)
def every_tutorial_has_a_test(_):
    """Every tutorial of the page is run by a test."""
    titles = set(sections(PAGE)) - {"Tutorials"}
    followed = set(re.findall(r'"([A-Z][\w ]+)"[,)]', pathlib.Path(__file__).read_text()))
    assert titles == followed, titles ^ followed
