# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a diagram of a state machine in a document is reported if its states differ from the states in the code."""
import pathlib
import tempfile
import unittest

from lab import documents

HEADER = "enum class State : std::uint8_t {\n\tclosed, /* not opened yet */\n\topen,\n};\n"
PAGE = ".. graphviz::\n\n   // states: core/door.hpp State\n   digraph door {{\n      {edges}\n   }}\n"


class Figures(unittest.TestCase):
    def complaints(self, edges):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for path, text in (("core/door.hpp", HEADER), ("Documentation/door.rst", PAGE.format(edges=edges))):
                (tree / path).parent.mkdir()
                (tree / path).write_text(text)
            return documents.check_figures(tree)

    def test_state_diagram_with_the_states_of_the_code_is_not_reported(self):
        self.assertEqual(self.complaints('closed -> open [label="key"]; open -> closed;'), [])

    def test_diagram_state_missing_in_the_code_is_reported(self):
        self.assertEqual(self.complaints("closed -> open; open -> locked;"),
                         ["Documentation/door.rst draws the state locked, which State in core/door.hpp does not have"])

    def test_state_missing_in_the_state_diagram_is_reported(self):
        self.assertEqual(self.complaints("closed -> closed;"), ["Documentation/door.rst does not draw open, a state of State in core/door.hpp"])


if __name__ == "__main__":
    unittest.main()
