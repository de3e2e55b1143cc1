// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the assignment of LIDs, and that LIDs are stored in a file and survive a restart of the
// manager.
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
TEST_F(Lids, StoredLidsAreLoadedByTheNextSubnetManager)
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

// Returns a subnet of these end ports, which have no LIDs yet. A GUID above 0x100 is a switch's.
Subnet subnet_of(const std::vector<ib::Guid> &guids)
{
	Subnet subnet;
	for (const ib::Guid guid : guids) {
		const bool is_switch = guid > 0x100;
		Node node;
		node.info.node_type = static_cast<std::uint8_t>(
			is_switch ? ib::NodeType::switch_ : ib::NodeType::channel_adapter);
		node.ports.resize(2);
		const PortRef ref{static_cast<int>(subnet.nodes.size()),
				  static_cast<std::uint8_t>(is_switch ? 0 : 1)};
		node.ports[ref.port].guid = guid;
		subnet.nodes.push_back(node);
		subnet.end_ports.push_back(ref);
		subnet.by_port_guid[guid] = ref;
	}
	return subnet;
}

std::vector<ib::Lid> lids_of(const Subnet &subnet)
{
	std::vector<ib::Lid> lids;
	for (const PortRef ref : subnet.end_ports)
		lids.push_back(subnet.port(ref).lid);
	return lids;
}

// A port's LID does not depend on the order in which the ports come up.
TEST_F(Lids, PlannedLidsDoNotDependOnTheOrderInWhichPortsAreDiscovered)
{
	const std::vector<ExpectedPort> expected{
		{0x10, false}, {0x110, true}, {0x20, false}, {0x30, false}};
	LidTable at_once;
	at_once.plan(expected, 1);
	Subnet all = subnet_of({0x10, 0x110, 0x20, 0x30});
	at_once.assign(all, 1);
	EXPECT_EQ(lids_of(all), (std::vector<ib::Lid>{2, 1, 4, 6}));

	LidTable later;
	later.plan(expected, 1);
	Subnet first = subnet_of({0x30, 0x40});
	later.assign(first, 1);
	EXPECT_EQ(lids_of(first), (std::vector<ib::Lid>{6, 8})) << "0x40 is not expected";
	Subnet second = subnet_of({0x20, 0x30, 0x10, 0x110});
	later.assign(second, 1);
	EXPECT_EQ(lids_of(second), (std::vector<ib::Lid>{4, 6, 2, 1}));
}

// Stored LIDs and those that ports have already are more important than the plan.
TEST_F(Lids, StoredLidsAndLidsAlreadySetInPortsTakePrecedenceOverPlannedLids)
{
	LidTable table;
	table.restore({{0x20, 1, 0}});
	table.plan({{0x10, false}, {0x20, false}, {0x30, false}}, 0);
	Subnet subnet = subnet_of({0x10, 0x20, 0x30});
	subnet.port(subnet.end_ports[2]).info.lid = 2; // which is planned for 0x10
	table.assign(subnet, 0);
	EXPECT_EQ(lids_of(subnet), (std::vector<ib::Lid>{4, 1, 2})) << "3 is planned for 0x30";
}

// LIDs that are planned for absent ports are used if there are no others.
TEST_F(Lids, LidsPlannedForAbsentPortsAreGivenToOtherPortsIfNoOtherLidIsFree)
{
	LidTable table;
	std::vector<LidTable::Entry> entries;
	for (unsigned lid = 1; lid < ib::lid_unicast_last; ++lid)
		entries.push_back({0x10000u + lid, static_cast<ib::Lid>(lid), 0});
	table.restore(entries);
	table.plan({{0x10, false}}, 0);
	Subnet subnet = subnet_of({0x20});
	table.assign(subnet, 0);
	EXPECT_EQ(lids_of(subnet), (std::vector<ib::Lid>{ib::lid_unicast_last}));
}

// The valid lines of a damaged file are used. A missing file is like an empty one, and a file that
// cannot be written is tolerated.
TEST_F(Lids, ValidLinesOfADamagedLidFileAreUsedAndAMissingLidFileIsNoError)
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
