// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that partitions, service levels and LMC are applied as configured, in the ports' tables and
// in the SA's responses.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sm/tests/three_hosts.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;
using ib::component;
using ib::MadMethod;
using Membership = Partition::Membership;
using Mc = ib::McMemberRecord;
using Path = ib::PathRecord;

// Two switches and three hosts. In partition "storage" (SL 5), the first host is a full member and
// the others are limited members. Partition "private" (SL 2) contains the first two hosts.
struct ServiceLevel : ThreeHosts {
	static Config config()
	{
		Config config;
		Partition storage;
		storage.name = "storage";
		storage.pkey = 0x8010;
		storage.sl = 5;
		storage.others = Membership::limited;
		storage.members = {{0x1001, Membership::full}};
		Partition secret;
		secret.name = "private";
		secret.pkey = 0x8020;
		secret.sl = 2;
		secret.others = Membership::none;
		secret.members = {{0x1001, Membership::full}, {0x2001, Membership::full}};
		config.partitions = {Partition{}, storage, secret};
		return config;
	}
	// Returns the first path between two hosts that matches the other components of the
	// request.
	template<class Fill>
	std::optional<ib::SaMad> path(Host &from, Host &to, std::uint64_t mask, Fill &&fill)
	{
		ib::SaMad mad =
			from.request(MadMethod::get, ib::attr_path_record,
				     component(Path::c_dgid) | component(Path::c_sgid) | mask);
		auto &wanted = Host::record<Path>(mad);
		wanted.sgid = from.gid();
		wanted.dgid = to.gid();
		fill(wanted);
		return from.ask_sa(mad);
	}
	std::optional<ib::SaMad> path_of_pkey(Host &from, Host &to, ib::Pkey pkey)
	{
		return path(from, to, component(Path::c_pkey),
			    [&](Path &wanted) { wanted.pkey = pkey; });
	}
};

TEST_F(ServiceLevel, PathHasTheServiceLevelOfItsPartition)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	const struct {
		ib::Pkey pkey;
		unsigned level;
	} cases[] = {{0xffff, 0}, {0x8010, 5}, {0x8020, 2}};
	for (const auto &each : cases) {
		SCOPED_TRACE(each.pkey);
		const auto answer = path_of_pkey(a, b, each.pkey);
		ASSERT_TRUE(answer);
		ASSERT_EQ(0, answer->header.status);
		const auto &record = record_of<Path>(*answer);
		EXPECT_EQ(each.pkey, record.pkey);
		EXPECT_EQ(each.level, record.sl());
	}
	// A service level can be requested, and there are no paths with other levels.
	const auto level = [&](unsigned sl) {
		return path(a, b, component(Path::c_pkey) | component(Path::c_sl),
			    [&](Path &wanted) {
				    wanted.pkey = std::uint16_t{0x8010};
				    wanted.qos_class_sl = static_cast<std::uint16_t>(sl);
			    })
			->header.status.value();
	};
	EXPECT_EQ(0, level(5));
	EXPECT_EQ(ib::sa_status_no_records, level(0));
}

TEST_F(ServiceLevel, MulticastGroupHasTheServiceLevelOfItsPartition)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	ib::SaMad mad = a.request(MadMethod::get, ib::attr_mc_member_record, component(Mc::c_mgid));
	// The MGID of IPoIB's broadcast group contains its P_Key (RFC 4391).
	Host::record<Mc>(mad).mgid = ib::Gid::from_parts(0xff12401b80100000, 0xffffffff);
	auto answer = a.ask_sa(mad);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(5u, record_of<Mc>(*answer).sl());
	EXPECT_EQ(0x8010u, record_of<Mc>(*answer).pkey);
	// The path to the group has the same service level.
	mad = a.request(MadMethod::get, ib::attr_path_record, component(Path::c_dgid));
	Host::record<Path>(mad).dgid = ib::Gid::from_parts(0xff12401b80100000, 0xffffffff);
	answer = a.ask_sa(mad);
	ASSERT_TRUE(answer);
	ASSERT_EQ(0, answer->header.status);
	EXPECT_EQ(5u, record_of<Path>(*answer).sl());
}

TEST_F(ServiceLevel, PkeyTableOfEachPortHasAFullOrLimitedPkeyForEachPartitionOfThePort)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	const auto has = [](Host &host, ib::Pkey pkey) {
		const auto answer = host.ask({}, MadMethod::get, ib::attr_pkey_table);
		if (!answer)
			return false;
		const auto &table = ib::smp_attribute<ib::PkeyTable>(*answer);
		return std::ranges::find(table.pkey, pkey, &ib::be16::value) !=
		       std::end(table.pkey);
	};
	for (Host *host : {&a, &b, &c})
		EXPECT_TRUE(has(*host, 0xffff));
	EXPECT_TRUE(has(a, 0x8010));
	EXPECT_TRUE(has(b, 0x0010));
	EXPECT_FALSE(has(b, 0x8010));
	EXPECT_TRUE(has(b, 0x8020));
	EXPECT_FALSE(has(c, 0x8020));
	EXPECT_FALSE(has(c, 0x0020));
}

TEST_F(ServiceLevel, LimitedMembersHavePathsOnlyToFullMembers)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	EXPECT_EQ(0, path_of_pkey(b, a, 0x8010)->header.status);
	EXPECT_EQ(ib::sa_status_no_records, path_of_pkey(b, c, 0x8010)->header.status);
	EXPECT_EQ(ib::sa_status_no_records, path_of_pkey(a, c, 0x8020)->header.status);
}

TEST_F(ServiceLevel, ServiceLevelsAreSpreadOverTheVirtualLanes)
{
	Config four = config();
	four.vls = 3; // four lanes
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, four)));
	EXPECT_EQ(3, left.port_info(1).operational_vls());
	const auto answer = a.ask({}, MadMethod::get, ib::attr_sl_to_vl);
	ASSERT_TRUE(answer);
	const auto &table = ib::smp_attribute<ib::SlToVl>(*answer);
	for (unsigned sl = 0; sl < 16; sl++)
		EXPECT_EQ(sl % 4, table.vl(sl)) << sl;
	EXPECT_EQ(0, path_of_pkey(a, b, 0x8010)->header.status);
}

// A switch with optimised tables gets one SMP for all tables, and other switches get one for each
// pair of ports. The resulting tables are the same.
TEST(VirtualLanes, OneSmpWritesAllOptimizedSlToVlTablesOfASwitch)
{
	const auto cost = [](bool at_once) {
		Lab lab;
		fabric::Switch &node = lab.fabric.add_switch(
			{.name = "s", .ports = 12, .optimized_sl_to_vl = at_once});
		Host &host = lab.add_host(node, 1);
		Config config;
		config.vls = 4; // eight lanes
		SubnetManager &sm = lab.start(node, 12, config);
		EXPECT_TRUE(Lab::settled(sm));
		for (unsigned in = 0; in <= 12; in++)
			for (unsigned out = 0; out <= 12; out++) {
				if (in == out)
					continue;
				const auto answer = host.ask({1}, MadMethod::get, ib::attr_sl_to_vl,
							     in << 8 | out);
				if (!answer) {
					ADD_FAILURE() << "no answer";
					return std::uint64_t{0};
				}
				for (unsigned sl = 0; sl < 16; sl++)
					EXPECT_EQ(sl % 8,
						  ib::smp_attribute<ib::SlToVl>(*answer).vl(sl))
						<< in << " to " << out;
			}
		return sm.status().requests;
	};
	EXPECT_EQ(cost(false) - cost(true), 12u * 13 - 1);
}

TEST_F(ServiceLevel, PathQueryReturnsAllLidsOfAnLmcRange)
{
	Config ranges = config();
	ranges.lmc = 2;
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, ranges)));
	ib::SaMad mad = a.request(MadMethod::get_table, ib::attr_path_record,
				  component(Path::c_dgid) | component(Path::c_sgid) |
					  component(Path::c_pkey));
	auto &wanted = Host::record<Path>(mad);
	wanted.sgid = a.gid();
	wanted.dgid = b.gid();
	wanted.pkey = ib::pkey_default_full;
	const auto table = a.ask_table(mad);
	ASSERT_TRUE(table);
	ASSERT_EQ(4u, table->count());
	std::set<ib::Lid> sources, destinations;
	for (std::size_t i = 0; i < table->count(); i++) {
		const auto &record =
			*reinterpret_cast<const Path *>(table->bytes.data() + i * table->stride);
		sources.insert(record.slid);
		destinations.insert(record.dlid);
	}
	EXPECT_EQ(4u, sources.size());
	EXPECT_EQ(b.lid(), *destinations.begin());
	EXPECT_EQ(b.lid() + 3, *destinations.rbegin());
	// Each of the LIDs is routed through both switches.
	for (ib::Lid lid : destinations) {
		ib::Mad hello{};
		hello.header.base_version = 1;
		hello.header.mgmt_class = 0x30;
		hello.header.class_version = 1;
		hello.header.method = 0x03;
		hello.header.tid = lid;
		fabric::MadAddress address;
		address.dlid = lid;
		address.src_qp = 1;
		address.dest_qp = 1;
		b.received.clear();
		ASSERT_TRUE(a.mads.send(address, hello));
		const auto got = b.received.next();
		ASSERT_TRUE(got) << lid;
		EXPECT_EQ(lid, got->address.dlid);
	}
}

} // namespace
} // namespace weft::sm
