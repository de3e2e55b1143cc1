# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that kernel-doc comments are parsed completely, checked against their declarations, and rendered by type of declaration."""
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

METHODS = """
/**
 * struct ib_thing_ops - what a driver does with things
 * @size_ib_thing: bytes of its structure
 */
struct ib_thing_ops {
\t/**
\t * take - take a thing
\t * @thing: the thing
\t * @done: called when it is taken
\t *
\t * Context: process. Return: 0.
\t */
\tint (*take)(struct ib_thing *thing,
\t\t    void (*done)(int status));
\tunsigned long size_ib_thing;
};
"""


class KernelDoc(unittest.TestCase):
    def only(self, text):
        blocks = list(kernel_doc.blocks(text))
        self.assertEqual(len(blocks), 1)
        return blocks[0]

    def test_kernel_doc_comment_of_a_function_is_parsed(self):
        block = self.only(FUNCTION)
        self.assertEqual((block.kind, block.name, block.summary), ("", "ib_take", "take *all* of it"))
        self.assertEqual(block.arguments, {"pd": "the domain, or one of its kind", "next": "see @pd"})
        self.assertEqual(block.declaration, "static inline int ib_take(struct ib_pd *pd, void (*next)(int value))")

    def test_kernel_doc_comment_of_a_function_is_rendered(self):
        text = kernel_doc.render(self.only(FUNCTION))
        self.assertTrue(text.startswith(".. c:function:: int ib_take(struct ib_pd *pd, void (*next)(int value))\n\n"), text)
        self.assertIn("   Take \\*all\\* of it.\n", text)
        self.assertIn("   ``next``\n      see ``pd``\n", text)
        self.assertIn("   As ``ib_give_()`` does.\n\n   **Context:** any with ``IB_FLAG``, else process.\n\n   **Return:** 0; -EINVAL.\n", text)
        self.assertRegex(text, r"   ::\n\n +kept   as it is\n")

    def test_kernel_doc_comment_of_a_structure_is_rendered(self):
        text = kernel_doc.render(self.only(STRUCTURE))
        self.assertEqual(text, ".. c:struct:: ib_thing\n\n   A thing.\n\n   Its text.\n")

    def test_kernel_doc_comment_of_a_method_is_rendered(self):
        structure, method = kernel_doc.blocks(METHODS)
        self.assertEqual((structure.kind, structure.name), ("struct", "ib_thing_ops"))
        self.assertEqual((method.kind, method.name, method.summary), ("method", "ib_thing_ops.take", "take a thing"))
        self.assertTrue(kernel_doc.render(method).startswith(
            ".. c:member:: int (*ib_thing_ops.take)(struct ib_thing *thing, void (*done)(int status))\n\n   Take a thing.\n"), kernel_doc.render(method))

    def test_comment_without_a_title_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no title"):
            list(kernel_doc.blocks("/**\n * Takes all of it.\n */\nint ib_take(void);\n"))

    def test_every_comment_of_the_public_headers_is_rendered(self):
        for header in sorted((cache.TREE / "include/rdma").glob("**/*.h")):
            text = header.read_text()
            blocks = list(kernel_doc.blocks(text))
            self.assertEqual(len(blocks), text.count("/**\n"), header)
            for block in blocks:
                self.assertIn(block.name, kernel_doc.render(block))


class Complaints(unittest.TestCase):
    """A declaration without a description is reported."""

    def lacks(self, text):
        return [complaint.removeprefix("a.h: ") for complaint in kernel_doc.complaints({"a.h": text})]

    def test_completely_described_function_is_not_reported(self):
        self.assertEqual(self.lacks(FUNCTION + METHODS), [])
        self.assertEqual(self.lacks("/**\n * ib_stop - stop\n *\n * Context: any.\n */\nvoid ib_stop(void);\n"), [])

    def test_function_without_a_description_is_reported(self):
        self.assertEqual(self.lacks("RDMA_C_BEGIN\nint ib_take(struct ib_pd *pd);\nRDMA_C_END\n"), ["ib_take() has no kernel-doc"])
        self.assertEqual(self.lacks("namespace rdma\n{\ninline bool is_err(const void *pointer)\n{\n\treturn !pointer;\n}\n}\n"),
                         ["is_err() has no kernel-doc"])

    def test_missing_sections_of_a_function_description_are_reported(self):
        for part, complaint in ((" * @next: see @pd\n", "does not describe @next"), ("Context: any with", 'does not describe its context ("Context:")'),
                                ("Return: 0; -EINVAL.", 'does not describe its return value ("Return:")'), (" take *all* of it", "has no summary")):
            self.assertIn(part, FUNCTION)
            self.assertEqual(self.lacks(FUNCTION.replace(part, "")), [f"ib_take() {complaint}"])

    def test_description_of_an_unknown_argument_is_reported(self):
        self.assertEqual(self.lacks(FUNCTION.replace("@next:", "@last:")), ["ib_take() does not describe @next", "ib_take() describes @last, which it does not have"])

    def test_kernel_doc_comment_placed_before_the_wrong_function_is_reported(self):
        self.assertEqual(self.lacks(FUNCTION.replace("ib_take(", "ib_get(") + "int ib_take(struct ib_pd *pd);\n"),
                         ["ib_get() has no kernel-doc", "the comment of ib_take() is before something else"])

    def test_double_underscore_function_needs_no_description_if_its_wrapper_has_one(self):
        behind = "int __ib_take(struct ib_pd *pd, const char *caller);\n"
        self.assertEqual(self.lacks(behind), ["ib_take() has no kernel-doc"])
        self.assertEqual(self.lacks(behind + FUNCTION), [])

    def test_structure_members_without_a_description_are_reported(self):
        self.assertEqual(self.lacks(STRUCTURE), ["struct ib_thing does not describe @value"])
        self.assertEqual(self.lacks("struct ib_thing {\n\tint value;\n};\n"), ["struct ib_thing has no kernel-doc"])
        nested = "struct ib_thing {\n\tunion {\n\t\tu64 id;\n\t\tvoid *cookie;\n\t};\n\tstruct {\n\t\tu8 raw[16];\n\t} gid;\n\tvoid (*done)(int status);\n};\n"
        comment = "/**\n * struct ib_thing - a thing\n * @id: its number\n * @gid: its GID\n */\n"
        self.assertEqual(self.lacks(comment + nested), ["struct ib_thing does not describe @cookie", "struct ib_thing does not describe @gid.raw",
                                                        "struct ib_thing does not describe @done", "struct ib_thing describes @gid, which it does not have"])

    def test_methods_without_a_description_are_reported(self):
        self.assertEqual(self.lacks(METHODS.replace("\t * @done: called when it is taken\n", "")), ["ib_thing_ops.take does not describe @done"])
        self.assertEqual(self.lacks(METHODS.replace("/**\n\t * take", "/*\n\t * take")), ["ib_thing_ops.take has no kernel-doc"])
        self.assertEqual(self.lacks(METHODS.replace(" Return: 0.", "")), ['ib_thing_ops.take does not describe its return value ("Return:")'])

    def test_public_headers_have_complete_kernel_doc_comments(self):
        headers = {str(path): path.read_text() for path in sorted((cache.TREE / "include/rdma").glob("**/*.h"))}
        self.assertGreater(sum(declared.kind == "function" for text in headers.values() for declared in kernel_doc.declarations(text)), 250)
        self.assertEqual(kernel_doc.complaints(headers), [])


if __name__ == "__main__":
    unittest.main()
