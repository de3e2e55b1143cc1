// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests kern::debugfs: reading or writing a file calls the method of the C++ object that provides
// the file, and names of removed directories and files can be reused.
#include <kern/debugfs.hpp>
#include <kern/errno.h>
#include <kern/kunit.hpp>

namespace
{

struct Shown {
	void show(kern::debugfs::Output &out) { out.print("number %d of %s\n", number, "all"); }
	int write(const char *text, size_t size)
	{
		if (size < 1 || text[0] < '0' || text[0] > '9')
			return -EINVAL;
		number = text[0] - '0';
		return 0;
	}
	int number = 7;
};

/*
 * A read returns what the object prints. Written data are passed to the object, and its result is
 * returned.
 */
void debugfs_reads_and_writes_call_the_methods_of_the_file(kern::kunit::Test &test)
{
	Shown shown;
	kern::debugfs::File file(kern::method<&Shown::show>, kern::method<&Shown::write>, &shown);
	char text[32];

	EXPECT_EQ(kern_kunit_show(&file.native(), text, sizeof(text)), 16u);
	EXPECT_EQ(__builtin_strcmp(text, "number 7 of all\n"), 0);
	EXPECT_EQ(file.native().write(&file.native(), "3", 1), 0);
	EXPECT_EQ(shown.number, 3);
	EXPECT_EQ(file.native().write(&file.native(), "x", 1), -EINVAL);
	EXPECT_EQ(file.native().write(&file.native(), "", 0), -EINVAL);
	EXPECT_EQ(shown.number, 3);
}

/* Directories and files are removed with their owners. Afterwards their names can be used again. */
void debugfs_names_can_be_reused_after_removal(kern::kunit::Test &test)
{
	Shown shown;
	for (int round = 0; round < 2; round++) {
		kern::debugfs::Directory top("weft_kern_test");
		kern::debugfs::Directory made("below", top);
		kern::debugfs::Directory below = std::move(made);
		EXPECT_EQ(made.native(), nullptr);
		EXPECT_TRUE(below.native() != nullptr);
		kern::debugfs::File read_only(kern::method<&Shown::show>, &shown);
		read_only.add("number", below);
		EXPECT_TRUE(read_only.native().write == nullptr);
		EXPECT_TRUE(read_only.native().entry != nullptr);
	}
}

} // namespace

KUNIT_SUITE(kern_debugfs, KUNIT_CASE(debugfs_reads_and_writes_call_the_methods_of_the_file),
	    KUNIT_CASE(debugfs_names_can_be_reused_after_removal));
