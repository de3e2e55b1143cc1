// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the output of a file in sysfs is limited to a page, and that the names of removed
// files can be reused.
#include <kern/errno.h>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/sysfs.hpp>

namespace
{

struct Shown {
	kern::Result<> show(kern::sysfs::Output &out)
	{
		if (error)
			return kern::Error{error};
		for (int i = 0; i < lines; i++)
			out.print("line %d of %d\n", i, lines);
		return {};
	}
	int lines = 1;
	int error = 0;
};

/* A read returns at most a page of what the object prints, or the object's error. */
void sysfs_output_is_limited_to_a_page(kern::kunit::Test &test)
{
	auto page = kern::make_array<char>(kern::Gfp::kernel, kern::page_size);
	ASSERT_TRUE(page.ok());
	char *const text = page.value().data();
	Shown shown;
	kern::sysfs::File file(kern::method<&Shown::show>, &shown);
	EXPECT_EQ(file.native().show(&file.native(), text), 12);
	EXPECT_EQ(__builtin_strcmp(text, "line 0 of 1\n"), 0);
	shown.lines = 1000;
	EXPECT_EQ(file.native().show(&file.native(), text), static_cast<int>(kern::page_size) - 1);
	shown.error = -EIO;
	EXPECT_EQ(file.native().show(&file.native(), text), -EIO);
}

/* Directories and files are removed with their owners. Afterwards their names can be used again. */
void sysfs_names_can_be_reused_after_removal(kern::kunit::Test &test)
{
	kern::kunit::FakeDevice device("weft-kern-test-sysfs");
	ASSERT_TRUE(device.native() != nullptr);
	Shown shown;
	for (int round = 0; round < 2; round++) {
		auto top = kern::sysfs::Directory::create("top", device.native());
		ASSERT_TRUE(top.ok());
		auto below = kern::sysfs::Directory::create("below", top.value());
		ASSERT_TRUE(below.ok());
		kern::sysfs::File file(kern::method<&Shown::show>, &shown);
		EXPECT_TRUE(file.add("lines", below.value()).ok());
		EXPECT_TRUE(file.native().attribute != nullptr);
	}
}

} // namespace

KUNIT_SUITE(kern_sysfs, KUNIT_CASE(sysfs_output_is_limited_to_a_page),
	    KUNIT_CASE(sysfs_names_can_be_reused_after_removal));
