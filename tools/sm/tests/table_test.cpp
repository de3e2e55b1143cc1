// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that subnet administration returns the tables of switches and ports.
#include <map>

#include <gtest/gtest.h>

#include "sm/tests/sa_lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;

template<class Record>
std::vector<Record> records(const Host::Table &table)
{
	std::vector<Record> all(table.count());
	for (std::size_t i = 0; i < all.size(); i++)
		std::memcpy(&all[i], table.bytes.data() + i * table.stride, sizeof(Record));
	return all;
}

TEST_F(SaTest, MulticastForwardingRecordsMatchTheTablesOfTheSwitches)
{
	const auto joined = join(a, group(1), kCreateMask);
	ASSERT_EQ(0, joined->header.status);
	ASSERT_EQ(0, join(b, group(1), kJoinMask)->header.status);
	const ib::Lid mlid = record_of<Mc>(*joined).mlid;
	auto table = a.ask_table(
		a.request(MadMethod::get_table, ib::attr_multicast_forwarding_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(72u, table->stride);
	std::map<ib::Lid, unsigned> ports;
	for (const auto &record : records<ib::MulticastForwardingRecord>(*table))
		if (record.position_block == 0)
			ports[record.lid] = record.table.ports[mlid & 31];
	EXPECT_EQ(1u << 1 | 1u << 8, ports[left.lid()]);
	EXPECT_EQ(1u << 1 | 1u << 8, ports[right.lid()]);
	// Query one switch only.
	ib::SaMad one = a.request(MadMethod::get_table, ib::attr_multicast_forwarding_record,
				  component(ib::MulticastForwardingRecord::c_lid) |
					  component(ib::MulticastForwardingRecord::c_block) |
					  component(ib::MulticastForwardingRecord::c_position));
	Host::record<ib::MulticastForwardingRecord>(one).lid = right.lid();
	table = a.ask_table(one);
	ASSERT_TRUE(table);
	EXPECT_EQ(1u, table->count());
}

TEST(SaTables, SlToVlRecordsMatchTheTablesOfThePorts)
{
	Lab lab;
	fabric::Switch &sw = lab.fabric.add_switch({.name = "sw", .ports = 4});
	Host &host = lab.add_host(sw, 1);
	SubnetManager &sm = lab.start(sw, 2, {.vls = 3});
	ASSERT_TRUE(Lab::settled(sm));
	auto table =
		host.ask_table(host.request(MadMethod::get_table, ib::attr_sl_to_vl_record, 0));
	ASSERT_TRUE(table);
	EXPECT_EQ(16u, table->stride);
	// There is one record for each pair of the switch's ports, including port 0, and one for
	// each channel adapter.
	EXPECT_EQ(5u * 4 + 2, table->count());
	for (const auto &record : records<ib::SlToVlRecord>(*table)) {
		EXPECT_EQ(0, record.table.vl(0));
		EXPECT_EQ(1, record.table.vl(5)) << "of four lanes";
	}
	ib::SaMad one = host.request(MadMethod::get_table, ib::attr_sl_to_vl_record,
				     component(ib::SlToVlRecord::c_lid) |
					     component(ib::SlToVlRecord::c_in_port) |
					     component(ib::SlToVlRecord::c_out_port));
	auto &wanted = Host::record<ib::SlToVlRecord>(one);
	wanted.lid = sw.lid();
	wanted.in_port = 1;
	wanted.out_port = 2;
	table = host.ask_table(one);
	ASSERT_TRUE(table);
	EXPECT_EQ(1u, table->count());
}

} // namespace
} // namespace weft::sm
