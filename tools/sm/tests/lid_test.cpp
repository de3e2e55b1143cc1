// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// LIDs are stored in a file and survive a restart of the manager.
#include "sm/lid_file.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::sm
{
namespace
{

class Lids : public ::testing::Test
{
protected:
	Lids()
	    : path_(std::filesystem::temp_directory_path() /
		    ("weft-lids-" + std::to_string(::getpid())))
	{
	}
	~Lids() override { std::filesystem::remove_all(path_); }

	const std::filesystem::path path_;
};

bool operator==(const LidTable::Entry &a, const LidTable::Entry &b)
{
	return a.guid == b.guid && a.base == b.base && a.lmc == b.lmc;
}

// The next subnet manager loads all stored LIDs, and stores them in the same order.
TEST_F(Lids, StoredLidsAreLoadedByTheNextManager)
{
	LidTable table;
	table.restore({{0x20, 4, 2}, {0x10, 9, 0}});
	LidFile(path_).store(table.entries());
	const auto loaded = LidFile(path_).load();
	ASSERT_EQ(2u, loaded.size());
	EXPECT_TRUE(loaded[0] == (LidTable::Entry{0x10, 9, 0}));
	EXPECT_TRUE(loaded[1] == (LidTable::Entry{0x20, 4, 2}));
	EXPECT_FALSE(std::filesystem::exists(path_.string() + ".new"));
}

// Stored LIDs are ignored if another port has them, if they are not unicast LIDs, or if they are
// not aligned as LMC requires.
TEST_F(Lids, InvalidAndDuplicateStoredLidsAreIgnored)
{
	LidTable table;
	table.restore({{0x10, 4, 1},
		       {0x20, 5, 0},
		       {0x30, 7, 1},
		       {0x40, 0, 0},
		       {0x10, 8, 0},
		       {0x50, ib::lid_unicast_last, 0}});
	const auto entries = table.entries();
	ASSERT_EQ(2u, entries.size());
	EXPECT_EQ(0x10u, entries[0].guid);
	EXPECT_EQ(4, entries[0].base);
	EXPECT_EQ(0x50u, entries[1].guid);
}

// The valid lines of a damaged file are used. A missing file is like an empty one, and a file that
// cannot be written is tolerated.
TEST_F(Lids, MissingAndDamagedLidFilesAreTolerated)
{
	EXPECT_TRUE(LidFile(path_).load().empty());
	EXPECT_TRUE(LidFile("").load().empty());
	std::ofstream(path_)
		<< "0x10 9 0\nnonsense\n0x0 3 0\n0x20 70000 0\n0x30 4 8\n0x40 5 0 more\n0x50\n\n0x60 6 1\n";
	const auto loaded = LidFile(path_).load();
	ASSERT_EQ(2u, loaded.size());
	EXPECT_EQ(0x60u, loaded[1].guid);
	LidFile("/no/such/folder/lids").store(loaded);
	LidFile("").store(loaded);
}

} // namespace
} // namespace weft::sm
