# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that functions that are documented to need process context, but do not check for it, are reported."""
import pathlib
import tempfile
import unittest

from lab import cache, contexts

HEADER = """
/**
 * take - takes it
 * @it: what
 *
 * Context: process. Return: 0.
 */
int take(struct it *it);

/**
 * give - gives it back
 * @it: what
 *
 * Context: any.
 */
void give(struct it *it);

int __make(struct it *it);

/**
 * make - makes it
 * @it: what
 *
 * Context:
 * process. Return: 0.
 */
static inline int make(struct it *it)
{
	return __make(it);
}

/**
 * it_handler - called with it
 * @it: what
 *
 * Context: process.
 */
typedef void (*it_handler)(struct it *it);

/**
 * make_own - makes one of a type
 * @type: which
 *
 * Context: process. Return: as make().
 */
#define make_own(type) ((struct type *)make(sizeof(struct type)))

/**
 * take_back - takes it again
 * @it: what
 *
 * Context: any.
 */
void take_back(struct it *it);
"""
CHECKED = """
int take(it *it)
{
	KERN_MIGHT_SLEEP();
	return 0;
}
int __make(it *it)
{
	return begin(it);
}
"""
HELPER = """
int begin(it *it)
{
	may_sleep(it->device, "make");
	return 0;
}
"""


class Contexts(unittest.TestCase):
    def complaints(self, **sources):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "include/rdma").mkdir(parents=True)
            (tree / "include/rdma/it.h").write_text(HEADER)
            (tree / "core/it").mkdir(parents=True)
            for name, text in sources.items():
                (tree / f"core/it/{name}.cpp").write_text(text)
            return contexts.complaints(tree)

    def test_functions_for_process_context_with_a_might_sleep_check_are_not_reported(self):
        self.assertEqual(self.complaints(calls=CHECKED, helper=HELPER), [])

    def test_function_for_process_context_without_a_might_sleep_check_is_reported(self):
        for calls, name in ((CHECKED.replace("\tKERN_MIGHT_SLEEP();\n", ""), "take"), (CHECKED.replace("begin(it)", "0"), "make")):
            found, = self.complaints(calls=calls, helper=HELPER)
            self.assertIn(f"{name}() is documented", found)

    def test_all_functions_for_process_context_have_a_might_sleep_check(self):
        self.assertEqual(contexts.complaints(cache.TREE), [])
