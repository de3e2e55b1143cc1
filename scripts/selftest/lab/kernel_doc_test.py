# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Comments of a header are read completely, and rendered by their kind."""
import unittest

from lab import cache, kernel_doc

FUNCTION = """
/* Not this one. */
/**
 * ib_take - take *all* of it
 * @pd: the domain, or one
 *	of its kind
 * @next: see @pd
 *
 * As ib_give_() does. Context: any with
 * IB_FLAG, else process. Return: 0; -EINVAL.
 *
 *	kept   as it is
 */
static inline int ib_take(struct ib_pd *pd,
\t\t\t  void (*next)(int value))
{
\treturn 0;
}
"""
STRUCTURE = """
/**
 * struct ib_thing - a thing
 *
 * Its text.
 */
struct ib_thing {
\tint value;
};
"""


class KernelDoc(unittest.TestCase):
    def only(self, text):
        blocks = list(kernel_doc.blocks(text))
        self.assertEqual(len(blocks), 1)
        return blocks[0]

    def test_a_function(self):
        block = self.only(FUNCTION)
        self.assertEqual((block.kind, block.name, block.summary), ("", "ib_take", "take *all* of it"))
        self.assertEqual(block.arguments, {"pd": "the domain, or one of its kind", "next": "see @pd"})
        self.assertEqual(block.declaration, "static inline int ib_take(struct ib_pd *pd, void (*next)(int value))")

    def test_a_function_rendered(self):
        text = kernel_doc.render(self.only(FUNCTION))
        self.assertTrue(text.startswith(".. c:function:: int ib_take(struct ib_pd *pd, void (*next)(int value))\n\n"), text)
        self.assertIn("   Take \\*all\\* of it.\n", text)
        self.assertIn("   ``next``\n      see ``pd``\n", text)
        self.assertIn("   As ``ib_give_()`` does.\n\n   **Context:** any with ``IB_FLAG``, else process.\n\n   **Return:** 0; -EINVAL.\n", text)
        self.assertRegex(text, r"   ::\n\n +kept   as it is\n")

    def test_a_structure(self):
        text = kernel_doc.render(self.only(STRUCTURE))
        self.assertEqual(text, ".. c:struct:: ib_thing\n\n   A thing.\n\n   Its text.\n")

    def test_a_comment_without_a_title_is_a_mistake(self):
        with self.assertRaisesRegex(ValueError, "no title"):
            list(kernel_doc.blocks("/**\n * Takes all of it.\n */\nint ib_take(void);\n"))

    def test_every_comment_of_the_public_headers_is_rendered(self):
        for header in sorted((cache.TREE / "include/rdma").glob("**/*.h")):
            text = header.read_text()
            blocks = list(kernel_doc.blocks(text))
            self.assertEqual(len(blocks), text.count("/**\n"), header)
            for block in blocks:
                self.assertIn(block.name, kernel_doc.render(block))


if __name__ == "__main__":
    unittest.main()
