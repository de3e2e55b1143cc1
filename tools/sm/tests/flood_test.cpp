// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a host that sends the most expensive requests at full speed delays neither responses
// to other hosts nor sweeps nor the manager's shutdown.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "sm/fair_queue.hpp"
#include "sm/tests/big_subnet.hpp"
#include "sm/tests/sa_lab.hpp"
#include "sm/work.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;
using Path = ib::PathRecord;

constexpr ib::Pkey kSmallPartition = 0x8005;
constexpr std::size_t kSmallPartitionPorts = 500;

// A thousand hosts on 25 switches, one of which floods the subnet manager, and another one that
// does not.
struct Flood : ::testing::Test {
	Lab lab;
	BigSubnet subnet{lab.fabric, 25, 40, 4};
	fabric::Switch &near = *subnet.leaves[1];
	fabric::Switch &far = *subnet.leaves[2];
	Host flooder{add_port("flooder", near), 0x3000, lab.loop};
	Host honest{add_port("honest", far), 0x4000, lab.loop};
	SubnetManager &sm = start();

	// Adds the port at the end of a leaf switch.
	fabric::Port &add_port(const std::string &name, fabric::Switch &leaf)
	{
		fabric::Port &port = lab.fabric.add_port(name);
		lab.fabric.connect(port, leaf.port(leaf.port_count()));
		return port;
	}
	void TearDown() override { lab.managers.clear(); }
	SubnetManager &start()
	{
		Config config;
		Partition small{.name = "small", .pkey = kSmallPartition};
		small.others = Partition::Membership::none;
		small.ipoib = false;
		for (std::size_t i = 0; i < kSmallPartitionPorts; i++)
			small.members[subnet.hosts[i]->guid() + 1] = Partition::Membership::full;
		config.partitions.push_back(small);
		lab.managers.push_back(std::make_unique<SubnetManager>(
			subnet.manager_port(lab.fabric), config, &lab.reactor));
		return *lab.managers.back();
	}
	void SetUp() override { ASSERT_TRUE(Lab::settled(sm)); }

	// Returns a request that makes the SA walk the routes between the maximum number of port
	// pairs, and matches none.
	ib::SaMad worst_request()
	{
		ib::SaMad mad =
			flooder.request(MadMethod::get_table, ib::attr_path_record,
					component(Path::c_pkey) | component(Path::c_rate_selector) |
						component(Path::c_rate));
		auto &record = Host::record<Path>(mad);
		record.pkey = kSmallPartition;
		record.rate_selector = ib::make_selected(ib::Selector::less,
							 static_cast<unsigned>(ib::Rate::gbps_2_5));
		return mad;
	}
	void flood(unsigned count = 8)
	{
		for (unsigned i = 0; i < count; i++) {
			ib::SaMad mad = worst_request();
			flooder.send_sa(mad);
		}
	}
	ib::SaMad path_request()
	{
		ib::SaMad mad = honest.request(MadMethod::get, ib::attr_path_record,
					       component(Path::c_dgid) | component(Path::c_sgid));
		auto &record = Host::record<Path>(mad);
		record.dgid = subnet.hosts.front()->gid();
		record.sgid = honest.gid();
		return mad;
	}
};

TEST_F(Flood, RequestOfAnotherHostIsAnsweredBeforeTheQueuedRequestsOfAFloodingHost)
{
	flood();
	const auto answer = honest.ask_sa(path_request());
	ASSERT_TRUE(answer);
	EXPECT_EQ(0, answer->header.status);
	EXPECT_EQ(0u, flooder.received.size()) << "requests of the flood that were answered first";
}

TEST_F(Flood, LargeSaRequestsAreAnsweredInSeveralEventLoopIterations)
{
	flood(2);
	lab.reactor.turn(Clock::time_point::min());
	EXPECT_EQ(0u, flooder.received.size()) << "requests answered in one go";
	// All requests are eventually answered.
	std::size_t answers = 0;
	while (answers < 2 && flooder.next_sa())
		answers++;
	EXPECT_EQ(2u, answers);
}

TEST_F(Flood, SubnetSweepCompletesBeforeTheRequestsOfAFloodAreAnswered)
{
	const auto before = sm.status();
	flood();
	sm.request_sweep();
	ASSERT_TRUE(Lab::settled(sm, before.sweeps));
	EXPECT_EQ(0u, flooder.received.size()) << "requests answered before the sweep ended";
}

// A host sends while another one gets a new LID, in the middle of the sweep.
TEST_F(Flood, FloodOfRequestsDoesNotDropResponsesToTheSubnetSweep)
{
	fabric::Port &port = lab.fabric.add_port("burst");
	bool armed = false;
	const auto burst = [&] {
		if (!std::exchange(armed, false))
			return;
		ib::SaMad mad = honest.request(MadMethod::get, ib::attr_class_port_info, 0);
		for (unsigned i = 0; i < 20000; i++)
			honest.mads.send(honest.sa_address(), reinterpret_cast<ib::Mad &>(mad));
	};
	const fabric::MadPort host(port, {.description = "burst", .node_guid = 0x5000},
				   {.received = {}, .port_changed = burst});
	fabric::Switch &sw = *subnet.leaves[3];
	const auto before = sm.status().sweeps;
	lab.fabric.connect(port, sw.port(sw.port_count()));
	ASSERT_TRUE(Lab::settled(sm, before));

	armed = true;
	const auto begin = lab.loop.now();
	sm.request_renumbering();
	ASSERT_TRUE(Lab::settled(sm, before + 1));
	EXPECT_FALSE(armed);
	EXPECT_LT(lab.loop.now() - begin, Config{}.smp_timeout) << "an SMP was sent again";
}

// A host that requests a path, and the next one as soon as the response has arrived.
struct Pinger {
	Pinger(Flood &f, fabric::Port &port)
	    : flood(f), mads(port, {.description = "pinger", .node_guid = 0x6000},
			     {.received = [this](fabric::AddressedMad &&) { answered(); },
			      .port_changed = {}})
	{
	}
	void answered()
	{
		if (--left != 0)
			ask();
	}
	void ask()
	{
		ib::SaMad mad = flood.path_request();
		Host::record<Path>(mad).sgid = mads.gid();
		mad.header.tid = left;
		mads.send(flood.honest.sa_address(), reinterpret_cast<ib::Mad &>(mad));
	}
	// Returns the amount of work that is done, for this host and for other hosts, until it has
	// all its responses.
	std::int64_t run()
	{
		left = 100;
		const std::int64_t before = flood.sm.status().served;
		ask();
		EXPECT_TRUE(flood.lab.loop.run_until([this] { return left == 0; }));
		return flood.sm.status().served - before;
	}

	Flood &flood;
	unsigned left = 0;
	fabric::MadPort mads;
};

// Counted in units of work, so that the result does not depend on the computer.
TEST_F(Flood, FloodDelaysResponsesToOtherHostsByLessThanAFactorOfTwo)
{
	fabric::Port &port = lab.fabric.add_port("pinger");
	Pinger pinger(*this, port);
	fabric::Switch &sw = *subnet.leaves[3];
	const auto before = sm.status().sweeps;
	lab.fabric.connect(port, sw.port(sw.port_count()));
	ASSERT_TRUE(Lab::settled(sm, before));
	const std::int64_t quiet = pinger.run();
	flood();
	// The last response arrives in the middle of a slice. The rest of the slice is counted
	// here.
	EXPECT_LE(pinger.run(), 2 * quiet + Work::kSlice);
	EXPECT_EQ(0u, flooder.received.size()) << "the flood has ended";
}

TEST_F(Flood, FloodSlowsTheSubnetSweepByLessThanAFactorOfTwo)
{
	const auto sweep = [this] {
		const auto before = sm.status();
		sm.request_sweep();
		EXPECT_TRUE(Lab::settled(sm, before.sweeps));
		const auto after = sm.status();
		return (static_cast<std::int64_t>(after.requests) -
			static_cast<std::int64_t>(before.requests)) *
			       cost::kSmp +
		       after.served - before.served;
	};
	const std::int64_t quiet = sweep();
	flood();
	EXPECT_LE(sweep(), 2 * quiet);
	EXPECT_EQ(0u, flooder.received.size()) << "the flood has ended";
}

// A subnet manager that is being stopped, and other tasks of its loop, wait for at most one slice.
TEST_F(Flood, AmountOfSaWorkPerEventLoopIterationIsLimited)
{
	flood();
	const std::int64_t before = sm.status().served;
	lab.reactor.turn(Clock::time_point::min());
	EXPECT_LE(sm.status().served - before, 2 * Work::kSlice);
	lab.managers.clear();
	EXPECT_EQ(0u, flooder.received.size());
}

TEST_F(Flood, NumberOfResponsesInProgressIsLimited)
{
	// There are more ports than answers that may be unfinished at a time. All are eventually
	// answered.
	std::vector<std::unique_ptr<Host>> hosts;
	const auto before = sm.status().sweeps;
	fabric::Switch &sw = lab.fabric.add_switch({.name = "more", .ports = 60});
	lab.fabric.connect(sw.port(60), subnet.leaves[3]->port(subnet.leaves[3]->port_count()));
	for (unsigned i = 0; i < FairQueue::kJobsMax + 8; i++) {
		fabric::Port &port = lab.fabric.add_port("more" + std::to_string(i));
		lab.fabric.connect(port, sw.port(i + 1));
		hosts.push_back(std::make_unique<Host>(port, 0x7000 + 0x10 * i, lab.loop));
	}
	ASSERT_TRUE(Lab::settled(sm, before));
	ASSERT_TRUE(sm.wait_for(
		[&](const auto &) {
			return std::ranges::all_of(hosts,
						   [](const auto &host) { return host->active(); });
		},
		kTimeLimit));
	for (auto &host : hosts) {
		host->received.clear();
		// The request is for the routes to all ports.
		ib::SaMad mad = worst_request();
		mad.component_mask = component(Path::c_sgid) | component(Path::c_rate_selector) |
				     component(Path::c_rate);
		Host::record<Path>(mad).sgid = host->gid();
		host->send_sa(mad);
	}
	for (auto &host : hosts)
		EXPECT_TRUE(host->next_sa());
}

} // namespace
} // namespace weft::sm
