# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that lists in documents are compared with the sources: packages for other distributions, and faults that can be injected into cards."""
import unittest

from copied_files import CopiedFiles
from lab import documents

PACKAGES = ("Documentation/support.rst", "scripts/packages/programs.list", "scripts/packages/lab.list")
FAULTS = ("Documentation/fault-injection.rst", "Documentation/man/weft.1", "tools/weft/web/page/faults.js", "tools/cards/mellanox_icm/faults.cpp",
          *sorted({source for sources in documents.FAULTS_OF.values() for source in sources}))


class Lists(CopiedFiles):
    def setUp(self):
        self.copy((*PACKAGES, *FAULTS))

    def test_documents_list_all_required_packages_and_all_card_faults(self):
        self.assertEqual(documents.check_packages(self.tree) + documents.check_faults(self.tree), [])

    def test_package_missing_from_support_rst_is_reported(self):
        self.replace("Documentation/support.rst", "libibumad-dev", "")
        self.replace("Documentation/support.rst", "json-devel", "")
        self.assertEqual(documents.check_packages(self.tree), ["support.rst does not list libibumad-dev for Ubuntu 24.04, which scripts/packages requires",
                                                               "support.rst does not list json-devel for Fedora, which scripts/packages requires"])

    def test_newly_required_package_is_reported_as_missing_for_ubuntu_and_fedora(self):
        self.replace("scripts/packages/lab.list", "python3\n", "python3\nzstd\n")
        self.assertEqual(len(documents.check_packages(self.tree)), 2)

    def test_card_fault_missing_from_a_document_is_reported(self):
        for path, old, place in (("tools/weft/web/page/faults.js", "'command-nth'", "faults.js"),
                                 ("Documentation/man/weft.1", "\\fBcommand\\-nth\\fR", "weft.1"),
                                 ("Documentation/fault-injection.rst", "``command-nth``", "fault-injection.rst, mlx4")):
            self.replace(path, old, old.replace("nth", "last"))
            found = documents.check_faults(self.tree)
            self.assertIn(f"{place} does not describe the fault command-nth, which the card has", found)
            self.assertIn(f"{place} describes the fault command-last, which the card does not have", found)

    def test_new_card_fault_is_reported_as_missing_in_each_document(self):
        self.replace("tools/cards/mellanox_icm/faults.cpp", '"command-nth"', '"command-nth", "headache"')
        places = {line.split(" does")[0] for line in documents.check_faults(self.tree)}
        self.assertEqual(places, {"faults.js", "weft.1", *(f"fault-injection.rst, {model}" for model in documents.FAULTS_OF)})


if __name__ == "__main__":
    unittest.main()
