# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that violations of the architecture rules are reported, and that the tree has none."""
import pathlib
import tempfile
import unittest

from lab import cache, source_rules

MODULE = '#include <kern/module.h>\n\nKERN_MODULE("a (b)", weft_a_init, weft_a_exit);\nKERN_PCI_IDS(ids, KERN_PCI_ID(1, 2, 0));\n'


class SourceRules(unittest.TestCase):
    def complaints(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return source_rules.complaints(pathlib.Path(folder))

    def assert_breaks(self, rule, name, text):
        said = self.complaints(name, text)
        self.assertEqual(len(said), 1, said)
        self.assertIn(name, said[0])
        self.assertIn(f"against rule {rule}", said[0])

    def assert_keeps(self, name, text):
        self.assertEqual(self.complaints(name, text), [])

    def test_source_tree_follows_the_source_rules(self):
        self.assertEqual(source_rules.complaints(cache.TREE), [])

    def test_c_file_with_more_than_module_boilerplate_is_refused(self):
        self.assert_keeps("hw/x/module.c", MODULE)
        self.assert_keeps("hw/x/tests/recovery_module.c", MODULE)
        self.assert_breaks(1, "hw/x/tests/recovery_module.c", MODULE + "int one;\n")
        self.assert_breaks(1, "hw/x/module.c", MODULE + "int weft_a_init(void)\n{\n\treturn 0;\n}\n")
        self.assert_breaks(1, "core/verbs/exports.c", "#include <kern/export.h>\nEXPORT_SYMBOL_GPL(ib_a);\n")
        self.assert_breaks(1, "core/verbs/helper.c", "int one;\n")

    def test_unannotated_mutexes_are_refused(self):
        self.assert_breaks(11, "tools/net/fabric/link.hpp", "std::mutex mutex_;\n")
        self.assert_breaks(11, "tools/net/fabric/link.cpp", "const std::lock_guard lock(mutex_);\n")
        self.assert_breaks(11, "tools/net/fabric/link.hpp", "\tmutable Mutex mutex_;\n\tint value_;\n")
        self.assert_keeps("tools/net/fabric/link.hpp", "\tmutable Mutex mutex_;\n\tint value_ WEFT_GUARDED_BY(mutex_);\n")
        self.assert_keeps("tools/base/mutex.hpp", "std::mutex mutex_;\n")

    def test_use_of_the_host_clock_is_refused(self):
        self.assert_breaks(10, "tools/sm/services.cpp", "const auto now = std::chrono::steady_clock::now();\n")
        self.assert_breaks(10, "tools/net/fabric/timeline.cpp", "std::thread thread(run);\n")
        self.assert_breaks(10, "tools/weftd/lab.cpp", "std::random_device random;\n")
        self.assert_keeps("tools/base/environment.cpp", "return std::chrono::steady_clock::now();\n")
        self.assert_keeps("tools/sm/services.cpp", "#include <chrono>\nconst auto now = loop.now();\n")


if __name__ == "__main__":
    unittest.main()
