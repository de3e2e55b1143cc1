// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the subnet manager brings up subnets of several topologies and keeps them up.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "sm/tests/big_subnet.hpp"
#include "sm/tests/lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;

// Checks that a datagram from each host reaches every other host.
void expect_all_reachable(Lab &lab)
{
	for (auto &from : lab.hosts) {
		for (auto &to : lab.hosts) {
			if (from == to)
				continue;
			ib::Mad mad{};
			mad.header.base_version = 1;
			mad.header.mgmt_class = 0x30;
			mad.header.class_version = 1;
			mad.header.method = 0x03;
			mad.header.tid = from->lid() * 0x10000u + to->lid();
			fabric::MadAddress address;
			address.dlid = to->lid();
			address.src_qp = 1;
			address.dest_qp = 1;
			to->received.clear();
			ASSERT_TRUE(from->mads.send(address, mad));
			auto got = to->received.next();
			ASSERT_TRUE(got) << "LID " << from->lid() << " to " << to->lid();
			EXPECT_EQ(mad.header.tid, got->mad.header.tid);
			EXPECT_EQ(from->lid(), got->address.slid);
		}
	}
}

TEST(SubnetManager, BringsUpASwitchAndTwoHosts)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &a = lab.add_host(sw, 1);
	Host &b = lab.add_host(sw, 2);
	SubnetManager &sm = lab.start(sw, 8);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_TRUE(a.active());
	EXPECT_TRUE(b.active());
	std::set<ib::Lid> lids{a.lid(), b.lid(), sw.lid(), a.mads.port_info().sm_lid};
	EXPECT_EQ(4u, lids.size());
	EXPECT_FALSE(lids.contains(0));
	EXPECT_EQ(ib::PortState::active, sw.port_info(1).state());
	EXPECT_EQ(ib::PortState::down, sw.port_info(3).state());
	expect_all_reachable(lab);
	auto subnet = sm.status().subnet;
	EXPECT_EQ(4u, subnet->nodes.size());
	EXPECT_EQ(4u, subnet->end_ports.size());
}

TEST(SubnetManager, BringsUpTwoHostsWithoutASwitch)
{
	Lab lab;
	fabric::Port &own = lab.fabric.add_port("sm");
	fabric::Port &other = lab.fabric.add_port("other");
	lab.fabric.connect(own, other);
	Host host(other, 0x4000, lab.loop);
	SubnetManager sm(own, {}, &lab.reactor);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_TRUE(host.active());
	EXPECT_NE(0, host.lid());
}

TEST(SubnetManager, TrapTriggersDiscoveryOfNewHosts)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Config config;
	config.light_sweep_interval = 1h;
	SubnetManager &sm = lab.start(sw, 8, config);
	ASSERT_TRUE(Lab::settled(sm));
	auto before = sm.status().sweeps;
	Host &late = lab.add_host(sw, 3);
	ASSERT_TRUE(Lab::settled(sm, before));
	ASSERT_TRUE(sm.wait_for([&](auto &) { return late.active(); }, kTimeLimit));
	ib::Lid lid = late.lid();

	// The port goes down and up again, and keeps its LID.
	before = sm.status().sweeps;
	lab.links[0]->set_plugged(false);
	ASSERT_TRUE(Lab::settled(sm, before));
	EXPECT_FALSE(sm.status().subnet->find_port(0x1001));
	before = sm.status().sweeps;
	lab.links[0]->set_plugged(true);
	ASSERT_TRUE(Lab::settled(sm, before));
	ASSERT_TRUE(sm.wait_for([&](auto &) { return late.active(); }, kTimeLimit));
	EXPECT_EQ(lid, late.lid());
}

// The switch has lost its tables, whether a sweep has noticed its absence or not.
TEST(SubnetManager, RestartedSwitchGetsItsForwardingTablesAgain)
{
	const fabric::SwitchConfig config{.name = "far", .ports = 8, .guid = 0x7700};
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	auto *far = &lab.fabric.add_switch(config);
	lab.fabric.connect(sw.port(1), far->port(1));
	lab.add_host(sw, 2);
	Host &host = lab.add_host(*far, 2);
	lab.add_host(*far, 3);
	SubnetManager &sm = lab.start(sw, 8);
	ASSERT_TRUE(Lab::settled(sm));
	expect_all_reachable(lab);
	for (const bool missed : {false, true}) {
		SCOPED_TRACE(missed);
		lab.fabric.remove_switch(*far);
		if (missed) {
			ASSERT_TRUE(sm.wait_for(
				[](const auto &status) {
					return status.subnet && !status.subnet->find_port(0x7700);
				},
				kTimeLimit));
		}
		const auto before = sm.status().sweeps;
		far = &lab.fabric.add_switch(config);
		lab.fabric.connect(sw.port(1), far->port(1));
		lab.fabric.connect(*lab.fabric.find_port("host2"), far->port(2));
		lab.fabric.connect(*lab.fabric.find_port("host3"), far->port(3));
		ASSERT_TRUE(Lab::settled(sm, before));
		ASSERT_TRUE(sm.wait_for([&](auto &) { return host.active(); }, kTimeLimit));
		expect_all_reachable(lab);
	}
}

TEST(SubnetManager, AllHostsReachEachOtherInASwitchRingWithParallelAndLoopbackCables)
{
	Lab lab;
	std::vector<fabric::Switch *> ring;
	constexpr unsigned switches = 6;
	for (unsigned i = 0; i < switches; i++)
		ring.push_back(
			&lab.fabric.add_switch({.name = "sw" + std::to_string(i), .ports = 8}));
	for (unsigned i = 0; i < switches; i++)
		lab.fabric.connect(ring[i]->port(1), ring[(i + 1) % switches]->port(2));
	// Two switches have a second cable, and one has a cable to itself.
	lab.fabric.connect(ring[0]->port(7), ring[1]->port(7));
	lab.fabric.connect(ring[3]->port(6), ring[3]->port(7));
	for (unsigned i = 0; i < switches; i++)
		lab.add_host(*ring[i], 3);
	SubnetManager &sm = lab.start(*ring[0], 4);
	ASSERT_TRUE(Lab::settled(sm));
	expect_all_reachable(lab);
}

TEST(SubnetManager, BringsUpARandomFabricDespiteLoss)
{
	constexpr std::uint64_t seed = 20;
	SCOPED_TRACE(::testing::Message() << "seed " << seed);
	std::mt19937_64 random(seed);
	Lab lab(seed);
	std::vector<fabric::Switch *> all;
	std::vector<unsigned> next_port;
	auto free_port = [&](std::size_t i) -> fabric::Port & {
		return all[i]->port(next_port[i]++);
	};
	fabric::LinkConfig bad;
	bad.faults = {.loss = 0.03, .duplication = 0.03, .corruption = 0.02};
	for (unsigned i = 0; i < 12; i++) {
		all.push_back(
			&lab.fabric.add_switch({.name = "sw" + std::to_string(i), .ports = 24}));
		next_port.push_back(1);
		if (i > 0) {
			auto other = random() % i;
			lab.fabric.connect(free_port(other), free_port(i), bad);
		}
	}
	for (unsigned i = 0; i < 8; i++) {
		auto a = random() % all.size();
		auto b = random() % all.size();
		if (a != b)
			lab.fabric.connect(free_port(a), free_port(b), bad);
	}
	for (std::size_t i = 0; i < 30; i++) {
		auto at = random() % all.size();
		if (next_port[at] < 24)
			lab.add_host(*all[at], next_port[at]++);
	}
	Config config;
	config.smp_timeout = 20ms;
	config.smp_retries = 8;
	SubnetManager &sm = lab.start(*all[0], next_port[0]++, config);
	ASSERT_TRUE(Lab::settled(sm));
	for (auto &host : lab.hosts)
		EXPECT_TRUE(host->active());
	for (fabric::Link *link : lab.fabric.links())
		link->set_faults({});
	expect_all_reachable(lab);
}

TEST(SubnetManager, BringsUpAThousandHosts)
{
	Lab lab;
	constexpr unsigned spines = 10;
	constexpr unsigned leaves = 40;
	constexpr unsigned hosts_per_leaf = 25;
	std::vector<fabric::Switch *> top;
	for (unsigned i = 0; i < spines; i++)
		top.push_back(&lab.fabric.add_switch(
			{.name = "spine" + std::to_string(i), .ports = leaves}));
	fabric::Switch *last = nullptr;
	for (unsigned i = 0; i < leaves; i++) {
		auto &leaf =
			lab.fabric.add_switch({.name = "leaf" + std::to_string(i), .ports = 36});
		for (unsigned s = 0; s < spines; s++)
			lab.fabric.connect(leaf.port(s + 1), top[s]->port(i + 1));
		for (unsigned h = 0; h < hosts_per_leaf; h++)
			lab.add_host(leaf, spines + 1 + h);
		last = &leaf;
	}
	SubnetManager &sm = lab.start(*last, 36);
	ASSERT_TRUE(Lab::settled(sm));
	auto subnet = sm.status().subnet;
	EXPECT_EQ(spines + leaves, subnet->switches.size());
	EXPECT_EQ(1000u + spines + leaves + 1, subnet->end_ports.size());
	for (auto &host : lab.hosts)
		ASSERT_TRUE(host->active());
	// The table has a record of 112 bytes for each node, and 200 bytes in each segment.
	Host &asker = *lab.hosts[0];
	const auto nodes =
		asker.ask_table(asker.request(ib::MadMethod::get_table, ib::attr_node_record, 0));
	ASSERT_TRUE(nodes);
	EXPECT_EQ(1000u + spines + leaves + 1, nodes->count());
	EXPECT_EQ((nodes->count() * 112 + 199) / 200, nodes->segments);
	// Paths of equal length share the load: no uplink carries much more than the others.
	const Node &leaf =
		subnet->nodes[static_cast<std::size_t>(subnet->by_guid.at(last->guid()))];
	std::vector<unsigned> carried(leaf.ports.size());
	for (std::uint8_t port : subnet->lfts[static_cast<std::size_t>(leaf.switch_index)])
		if (port < carried.size())
			carried[port]++;
	for (unsigned port = 1; port <= spines; port++)
		EXPECT_NEAR(1000.0 / spines, carried[port], 15) << port;
}

TEST(SubnetManager, LmcOf2GivesEachPortFourLids)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &a = lab.add_host(sw, 1);
	Host &b = lab.add_host(sw, 2);
	Config config;
	config.lmc = 2;
	SubnetManager &sm = lab.start(sw, 8, config);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_EQ(0, a.lid() % 4);
	EXPECT_EQ(2, a.mads.port_info().lmc());
	EXPECT_NE(a.lid(), b.lid());
	EXPECT_EQ(sm.status().subnet->find_lid(static_cast<ib::Lid>(a.lid() + 3)),
		  sm.status().subnet->find_port(0x1001));
}

TEST(SubnetManager, RenumberingRequestChangesTheBaseLidOfEveryPort)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Config config;
	config.lmc = 1;
	Host &a = lab.add_host(sw, 1);
	Host &b = lab.add_host(sw, 2);
	SubnetManager &sm = lab.start(sw, 8, config);
	ASSERT_TRUE(Lab::settled(sm));
	auto manager_lid = [&]() -> ib::Lid { return a.mads.port_info().sm_lid; };
	for (int round = 0; round < 3; round++) {
		const std::set<ib::Lid> old{a.lid(), b.lid(), sw.lid(), manager_lid()};
		auto sweeps = sm.status().sweeps;
		sm.request_renumbering();
		ASSERT_TRUE(Lab::settled(sm, sweeps));
		for (ib::Lid lid : {a.lid(), b.lid(), sw.lid(), manager_lid()})
			EXPECT_FALSE(old.contains(lid)) << lid;
		EXPECT_EQ(a.mads.port_info().sm_lid, b.mads.port_info().sm_lid);
		expect_all_reachable(lab);
	}
	/* Released LIDs are reused, so the numbers do not grow. */
	EXPECT_LT(a.lid(), 32);
}

TEST(SubnetManager, PkeyIndexesAreStableAcrossPartitionChanges)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &a = lab.add_host(sw, 1);
	Host &b = lab.add_host(sw, 2);
	Config config;
	Partition second;
	second.name = "second";
	second.pkey = 0x8005;
	second.others = Partition::Membership::none;
	second.members = {{0x1001, Partition::Membership::full}};
	config.partitions = {Partition{}, second};
	SubnetManager &sm = lab.start(sw, 8, config);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_TRUE(a.mads.own_pkey(0x8005));
	EXPECT_FALSE(b.mads.own_pkey(0x8005));
	EXPECT_TRUE(b.mads.own_pkey(0xffff));
}

TEST(SubnetManager, SubnetManagerOfHigherPriorityTakesOver)
{
	Lab lab;
	auto &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &a = lab.add_host(sw, 1);
	Config low;
	low.name = "low";
	low.priority = 3;
	low.guid = 0xa0;
	low.poll_interval = 50ms;
	SubnetManager &first = lab.start(sw, 7, low);
	ASSERT_TRUE(Lab::settled(first));
	ib::Lid lid = a.lid();

	Config high = low;
	high.name = "high";
	high.priority = 9;
	high.guid = 0xb0;
	SubnetManager &second = lab.start(sw, 8, high);
	auto is = [](ib::SmState state) {
		return [state](const SubnetManager::Status &status) {
			return status.state == state;
		};
	};
	ASSERT_TRUE(second.wait_for(is(ib::SmState::master), kTimeLimit));
	ASSERT_TRUE(first.wait_for(is(ib::SmState::standby), kTimeLimit));
	ASSERT_TRUE(Lab::settled(second));
	EXPECT_EQ(lid, a.lid());
	EXPECT_EQ(second.status().subnet->port(second.status().subnet->find_port(0xb1)).lid,
		  a.mads.port_info().sm_lid);

	// The master disappears, and the standby manager takes over the subnet again.
	second.set_enabled(false);
	ASSERT_TRUE(first.wait_for(is(ib::SmState::master), kTimeLimit));
	auto back = [&](const auto &) { return a.mads.port_info().sm_lid != 0 && a.active(); };
	ASSERT_TRUE(first.wait_for(back, kTimeLimit));
}

// The cost of a flapping link depends on the change, not on the size of the subnet.
TEST(LargeSubnet, FlappingLinkCausesOnlyPartialSweeps)
{
	Lab lab;
	BigSubnet subnet(lab.fabric, 20, 10, 2);
	SubnetManager sm(subnet.manager_port(lab.fabric), {}, &lab.reactor);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_EQ(subnet.hosts.size(), subnet.active());
	const auto whole = sm.status();
	subnet.links[17]->set_plugged(false);
	ASSERT_TRUE(Lab::settled(sm, whole.sweeps));
	const auto gone = sm.status();
	EXPECT_EQ(whole.subnet->end_ports.size() - 1, gone.subnet->end_ports.size());
	subnet.links[17]->set_plugged(true);
	ASSERT_TRUE(Lab::settled(sm, gone.sweeps));
	EXPECT_EQ(subnet.hosts.size(), subnet.active());
	// Each of a few sweeps asks every switch whether something has changed, and reads the ports
	// of one.
	const std::uint64_t cost = sm.status().requests - whole.requests;
	EXPECT_GT(5 * (whole.subnet->switches.size() + 2 * 14 + 20), cost);
	EXPECT_GT(whole.requests / 10, cost);
}

// After any changes of links, a partial sweep has the same result as a full one.
TEST(LargeSubnet, PartialSweepHasTheSameResultAsAFullSweep)
{
	Lab lab;
	BigSubnet subnet(lab.fabric, 6, 3, 2);
	SubnetManager sm(subnet.manager_port(lab.fabric), {}, &lab.reactor);
	ASSERT_TRUE(Lab::settled(sm));
	std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 1u);
	const auto links = lab.fabric.links();
	for (unsigned round = 0; round < 25; round++) {
		const auto before = sm.status().sweeps;
		for (unsigned change = 0; change <= random() % 3; change++) {
			fabric::Link &link = *links[random() % links.size()];
			link.set_plugged(!link.plugged());
		}
		// Changes without a trap are found by the next periodic sweep.
		sm.wait_for([&](const auto &status) { return status.sweeps > before; }, 6s);
		sm.wait_for([](const auto &) { return false; }, 12s);
		const auto changes = sm.status().subnet;
		const auto swept = sm.status().sweeps;
		sm.request_sweep();
		ASSERT_TRUE(sm.wait_for([&](const auto &status) { return status.sweeps > swept; },
					kTimeLimit));
		const auto all = sm.status().subnet;
		ASSERT_EQ(all->nodes.size(), changes->nodes.size()) << "round " << round;
		ASSERT_EQ(all->end_ports.size(), changes->end_ports.size()) << "round " << round;
		for (const auto &[guid, ref] : all->by_port_guid) {
			const PortRef found = changes->find_port(guid);
			ASSERT_TRUE(found) << "round " << round;
			EXPECT_EQ(all->port(ref).lid, changes->port(found).lid);
			EXPECT_EQ(all->port(ref).info.state(), changes->port(found).info.state());
			EXPECT_EQ(all->route(ref).size(), changes->route(found).size());
		}
	}
	// When all links are plugged in again, all hosts become active.
	for (fabric::Link *link : links)
		link->set_plugged(true);
	EXPECT_TRUE(sm.wait_for(
		[&](const auto &) { return subnet.active() == subnet.hosts.size(); }, 60s));
}

} // namespace
} // namespace weft::sm
