# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that files without a licence, references to missing files in documents, and invalid subjects of commits are reported."""
import pathlib
import subprocess
import tempfile
import unittest

from lab import cache, documents, conventions


class Conventions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_file_without_a_licence_is_reported(self):
        self.write("core/a.cpp", f"// {conventions.LICENCE}\nint a;\n")
        self.write("scripts/b", f"#!/bin/sh\n# {conventions.LICENCE}\n")
        self.write("LICENSES/c", "text\n")
        self.assertEqual(conventions.unlicensed(self.tree), [])
        self.write("core/late.cpp", f"\n\n\n// {conventions.LICENCE}\n")
        self.write("core/joined.cpp", f"// {conventions.LICENCE} What it is.\n")
        self.write("core/none.cpp", "int none;\n")
        self.assertEqual([complaint.split()[0] for complaint in conventions.unlicensed(self.tree)], ["core/joined.cpp", "core/late.cpp", "core/none.cpp"])

    def test_files_ignored_by_git_need_no_licence(self):
        subprocess.run(["git", "init", "-q", self.tree], check=True)
        self.write(".gitignore", f"# {conventions.LICENCE}\n/build/\n")
        self.write("build/x.cpp", "int x;\n")
        self.assertEqual(conventions.unlicensed(self.tree), [])
        self.write("x.cpp", "int x;\n")
        self.assertEqual(len(conventions.unlicensed(self.tree)), 1)

    def test_reference_to_a_missing_file_is_reported(self):
        self.write("core/verbs/qp.cpp", "")
        self.write("Documentation/a.rst", "``core/verbs/qp.cpp``, ``core/verbs``, ``tools/ROOM/tests/``, ``core/*/Kbuild``\n")
        self.assertEqual(documents.missing_files(self.tree), [])
        self.write("README.md", "`core/verbs/gone.cpp`\n")
        self.assertEqual(documents.missing_files(self.tree), ["README.md names core/verbs/gone.cpp, which does not exist"])

    def test_documented_rule_that_names_a_missing_function_is_reported(self):
        self.write("core/cm/id.cpp", "void Id::run()\n{\n}\nint end();\n")
        text = "Code: ``core/cm/id.cpp`` (``Id::run()``,\n``end``), ``core/cm`` (``other``)\n"
        self.assertEqual(documents.missing_functions(self.tree, "CM-01", text), [])
        self.assertEqual(documents.missing_functions(self.tree, "CM-01", text.replace("``end``", "``hear`` and ``stop``")),
                         [f"CM-01 names {name} in core/cm/id.cpp, which does not have it" for name in ("hear", "stop")])

    def test_invalid_commit_subjects_are_refused(self):
        for subject in ("card: reserve events", "card: add " + "x" * 62, "fabric, sm: fix locks", "hw/mlx4: poll CQs", 'Revert "card: reserve events"'):
            self.assertIsNone(conventions.subject_complaint(subject), subject)
        for subject in ("", "reserve events", "Card: reserve events", "card:reserve events", "card: reserve events.", "mlx4: poll CQs",
                        "fabric, mlx4: fix locks", "card: add " + "x" * 63):
            self.assertIsNotNone(conventions.subject_complaint(subject), subject)

    def test_commit_subjects_with_unusual_words_are_refused(self):
        for subject in ("attach: allow programs to use the port", "sm: bring up switches", "tests: ping a guest", "sm: seed the hash", "lab: do not report idle guests",
                        "docs: describe how a QP fails", "weft: give each guest an address", "kern: keep the lock", "ipoib: take the MTU from the group"):
            self.assertIsNone(conventions.subject_complaint(subject), subject)
        for subject, reason in (("card: poll", "object of the verb"), ("card: the queue is polled", "'the' is not an imperative"),
                                ("card: added a queue", "'added' is not an imperative"), ("card: polling of queues", "'polling' is not an imperative"),
                                ("card: what a guest may use", "'what' is not an imperative"), ("card: let programs use the port", "write allow"),
                                ("tests: bear slow hosts", "write tolerate"), ("kern: run a thread beside a test", "write in addition to"),
                                ("tests: show which guest is a stranger", "write independent peer")):
            self.assertIn(reason, conventions.subject_complaint(subject) or "", subject)

    def test_commit_subjects_of_unmerged_commits_are_checked(self):
        def git(*words):
            subprocess.run(["git", "-C", self.tree, "-c", "user.name=n", "-c", "user.email=e", *words], check=True, capture_output=True)
        git("init", "-q", "-b", "main")
        git("commit", "--allow-empty", "-m", "old and bad")
        git("checkout", "-q", "-b", "topic")
        git("commit", "--allow-empty", "-m", "card: fix queues")
        self.assertEqual(conventions.subjects(self.tree), [])
        git("commit", "--allow-empty", "-m", "bad")
        self.assertEqual(len(conventions.subjects(self.tree)), 1)

    def test_source_tree_has_licences_and_no_references_to_missing_files(self):
        self.assertEqual(conventions.unlicensed(cache.TREE) + documents.missing_files(cache.TREE), [])


if __name__ == "__main__":
    unittest.main()
