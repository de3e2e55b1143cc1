# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that clang reports an access, in the sources of tools/, to a class member without the mutex that protects it."""
import pathlib
import tempfile
import unittest

from lab import cache, host_locks

SOURCE = """
#include "base/mutex.hpp"

class Counter
{{
public:
	void add()
	{{
		{lock}
		value_++;
	}}

private:
	weft::Mutex mutex_;
	int value_ WEFT_GUARDED_BY(mutex_) = 0;
}};
"""


class HostLocks(unittest.TestCase):
    def complaint(self, lock):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "counter.cpp"
            path.write_text(SOURCE.format(lock=lock))
            return host_locks.complaint(path)

    def test_member_used_without_its_mutex_is_reported(self):
        self.assertIn("writing variable 'value_' requires holding mutex 'mutex_'", self.complaint(""))

    def test_member_used_with_its_mutex_held_is_not_reported(self):
        self.assertEqual(self.complaint("const weft::MutexLock lock(mutex_);"), "")

    def test_sources_of_classes_with_lock_annotations_are_checked(self):
        names = {path.relative_to(cache.TREE).as_posix() for path in host_locks.sources(cache.TREE)}
        self.assertLessEqual({"tools/net/fabric/link.cpp", "tools/net/fabric/switch_management.cpp", "tools/base/closing.cpp"}, names)
