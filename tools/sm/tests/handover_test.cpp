// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that subnet managers hand over as IBA 14.4.1 specifies. The test sends the SMInfo messages
// of the other manager itself.
#include <atomic>

#include <gtest/gtest.h>

#include "sm/tests/lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;
using ib::MadMethod;
using ib::SmState;

constexpr ib::Guid kOurGuid = 0xb0;
constexpr unsigned kOurPort = 8;
constexpr unsigned kPeerPort = 1;

// Another subnet manager, which reports the state that the test sets and does nothing else.
class Peer
{
public:
	Peer(fabric::Port &port, ib::Guid guid, unsigned priority, SmState first, Loop &loop)
	    : state(first), polled(&loop), orders(&loop), guid_(guid), priority_(priority),
	      answers_(&loop),
	      mads_(port, {.description = "peer", .node_guid = guid, .is_sm = true},
		    {.received = [this](fabric::AddressedMad &&mad) { receive(std::move(mad)); },
		     .port_changed = {}})
	{
	}

	// Sends a control request to weft's subnet manager. Returns the status of the response.
	std::optional<unsigned> order(std::uint32_t control)
	{
		ib::Smp smp{};
		smp.header.base_version = 1;
		smp.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
		smp.header.class_version = 1;
		smp.header.method = static_cast<std::uint8_t>(MadMethod::set);
		smp.header.hop_cnt = 2;
		smp.header.tid = ++tid_;
		smp.header.attr_id = std::uint16_t{ib::attr_sm_info};
		smp.header.attr_mod = control;
		smp.dr_slid = ib::lid_permissive;
		smp.dr_dlid = ib::lid_permissive;
		smp.initial_path[1] = 1;
		smp.initial_path[2] = kOurPort;
		ib::smp_attribute<ib::SmInfo>(smp) = info();
		if (!mads_.send_directed(smp))
			return std::nullopt;
		const auto answer = answers_.next();
		if (!answer || answer->header.tid != smp.header.tid)
			return std::nullopt;
		answered = ib::smp_attribute<ib::SmInfo>(*answer);
		return answer->header.status & 0x7fff;
	}

	std::atomic<SmState> state;
	std::atomic<bool> silent{false};
	// One item for each poll by weft's subnet manager.
	fabric::testing::Collected<ib::MadMethod> polled;
	// The attribute modifiers of control requests from weft's subnet manager.
	fabric::testing::Collected<std::uint32_t> orders;
	ib::SmInfo answered{};

private:
	ib::SmInfo info() const
	{
		ib::SmInfo info{};
		info.guid = guid_ + 1;
		info.priority_state = static_cast<std::uint8_t>(
			priority_ << 4 | static_cast<unsigned>(state.load()));
		return info;
	}
	void receive(fabric::AddressedMad &&mad)
	{
		auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
		if (smp.header.attr_id != ib::attr_sm_info ||
		    smp.header.cls() != ib::MgmtClass::subn_directed_route)
			return;
		if (smp.header.is_response())
			return answers_.push(smp);
		if (silent)
			return;
		if (smp.header.is_method(MadMethod::get))
			polled.push(MadMethod::get);
		const std::uint32_t control = smp.header.attr_mod;
		const bool set = smp.header.is_method(MadMethod::set);
		smp.header.method = static_cast<std::uint8_t>(MadMethod::get_resp);
		ib::smp_attribute<ib::SmInfo>(smp) = info();
		mads_.send_directed(smp);
		if (set)
			orders.push(control);
	}

	const ib::Guid guid_;
	const unsigned priority_;
	std::uint64_t tid_ = 0;
	fabric::testing::Collected<ib::Smp> answers_;
	fabric::MadPort mads_;
};

struct Handover : ::testing::Test {
	Lab lab;
	fabric::Switch &sw = lab.fabric.add_switch({.name = "sw", .ports = 8});
	Host &host = lab.add_host(sw, 2);
	std::unique_ptr<Peer> peer;

	void TearDown() override
	{
		lab.managers.clear();
		peer.reset();
	}
	Peer &meet(unsigned priority, SmState state, ib::Guid guid = 0xa0)
	{
		fabric::Port &port = lab.fabric.add_port("peer");
		peer = std::make_unique<Peer>(port, guid, priority, state, lab.loop);
		lab.fabric.connect(port, sw.port(kPeerPort));
		return *peer;
	}
	SubnetManager &start(unsigned priority)
	{
		Config config;
		config.guid = kOurGuid;
		config.priority = priority;
		config.poll_interval = 20ms;
		config.smp_timeout = 50ms;
		config.smp_retries = 1;
		return lab.start(sw, kOurPort, config);
	}
	static bool becomes(SubnetManager &sm, SmState state)
	{
		return sm.wait_for([&](const auto &status) { return status.state == state; },
				   kTimeLimit);
	}
};

TEST_F(Handover, StandbyTakesOverWhenTheMasterStopsResponding)
{
	Peer &master = meet(9, SmState::master);
	SubnetManager &sm = start(3);
	ASSERT_TRUE(becomes(sm, SmState::standby));
	EXPECT_EQ(0, host.lid()) << "a standby configures nothing";
	master.polled.clear();
	for (int poll = 0; poll < 3; poll++)
		ASSERT_TRUE(master.polled.next()) << "it looks at the master";
	EXPECT_EQ(SmState::standby, sm.status().state);

	master.silent = true;
	ASSERT_TRUE(becomes(sm, SmState::master));
	ASSERT_TRUE(sm.wait_for([&](auto &) { return host.active(); }, kTimeLimit));
	EXPECT_NE(0, host.lid());
}

TEST_F(Handover, StandbyBecomesMasterWhenTheMasterReportsSmStateNotActive)
{
	Peer &master = meet(9, SmState::master);
	SubnetManager &sm = start(3);
	ASSERT_TRUE(becomes(sm, SmState::standby));
	master.state = SmState::not_active; // it still answers requests
	ASSERT_TRUE(becomes(sm, SmState::master));
}

TEST_F(Handover, MasterHandsOverToAManagerOfHigherPriority)
{
	SubnetManager &sm = start(3);
	ASSERT_TRUE(Lab::settled(sm));
	const ib::Lid lid = host.lid();
	Peer &higher = meet(9, SmState::standby);
	const auto order = higher.orders.next();
	ASSERT_TRUE(order);
	EXPECT_EQ(unsigned{ib::sm_info_handover}, *order);
	ASSERT_TRUE(becomes(sm, SmState::standby));
	higher.state = SmState::master;
	EXPECT_EQ(0u, higher.order(ib::sm_info_acknowledge));
	EXPECT_EQ(SmState::standby, higher.answered.state());
	EXPECT_EQ(3u, higher.answered.priority());
	EXPECT_EQ(lid, host.lid());
}

// Two managers that discover the subnet at the same time both become master, without a trap.
TEST_F(Handover, MasterBecomesStandbyWhenADiscoveringHigherPriorityManagerBecomesMaster)
{
	Peer &higher = meet(9, SmState::discovering);
	SubnetManager &sm = start(3);
	ASSERT_TRUE(Lab::settled(sm));
	// Traps of links that come up cause sweeps, too.
	sm.wait_for([](const auto &) { return false; }, 1000ms);
	ASSERT_EQ(SmState::master, sm.status().state);
	higher.state = SmState::master;
	ASSERT_TRUE(becomes(sm, SmState::standby));
}

TEST_F(Handover, MasterDoesNotHandOverToAManagerOfLowerPriority)
{
	SubnetManager &sm = start(3);
	ASSERT_TRUE(Lab::settled(sm));
	auto sweeps = sm.status().sweeps;
	Peer &lower = meet(1, SmState::standby);
	ASSERT_TRUE(sm.wait_for([&](const auto &status) { return status.sweeps > sweeps; },
				kTimeLimit));
	sweeps = sm.status().sweeps;
	sm.request_sweep();
	ASSERT_TRUE(sm.wait_for([&](const auto &status) { return status.sweeps > sweeps; },
				kTimeLimit));
	EXPECT_GE(lower.polled.size(), 1u) << "it was met";
	EXPECT_EQ(0u, lower.orders.size());
	EXPECT_EQ(SmState::master, sm.status().state);
}

TEST_F(Handover, MasterHandsOverToAManagerOfEqualPriorityAndLowerGuid)
{
	SubnetManager &sm = start(3);
	ASSERT_TRUE(Lab::settled(sm));
	Peer &equal = meet(3, SmState::standby, kOurGuid - 0x10);
	ASSERT_TRUE(equal.orders.next());
	EXPECT_TRUE(becomes(sm, SmState::standby));
}

TEST_F(Handover, MasterDoesNotHandOverToAManagerOfEqualPriorityAndHigherGuid)
{
	SubnetManager &sm = start(3);
	ASSERT_TRUE(Lab::settled(sm));
	const auto sweeps = sm.status().sweeps;
	Peer &equal = meet(3, SmState::standby, kOurGuid + 0x10);
	ASSERT_TRUE(sm.wait_for([&](const auto &status) { return status.sweeps > sweeps; },
				kTimeLimit));
	EXPECT_EQ(0u, equal.orders.size());
	EXPECT_EQ(SmState::master, sm.status().state);
}

TEST_F(Handover, NewMasterSendsHandoverAcknowledge)
{
	Peer &master = meet(9, SmState::master);
	SubnetManager &sm = start(10);
	ASSERT_TRUE(becomes(sm, SmState::standby)) << "the other one is master already";
	EXPECT_EQ(0u, master.order(ib::sm_info_handover));
	EXPECT_EQ(SmState::master, master.answered.state());
	master.state = SmState::standby;
	const auto order = master.orders.next();
	ASSERT_TRUE(order);
	EXPECT_EQ(unsigned{ib::sm_info_acknowledge}, *order);
	ASSERT_TRUE(sm.wait_for([&](auto &) { return host.active(); }, kTimeLimit));
}

TEST_F(Handover, SmInfoControlPacketsAreRefusedInInvalidSmStates)
{
	constexpr unsigned refused = ib::mad_status_invalid_value;
	Peer &other = meet(9, SmState::master);
	SubnetManager &sm = start(3);
	ASSERT_TRUE(becomes(sm, SmState::standby));
	EXPECT_EQ(refused, other.order(ib::sm_info_standby)) << "it does already";
	EXPECT_EQ(refused, other.order(77));
	EXPECT_EQ(0u, other.order(ib::sm_info_disable));
	EXPECT_TRUE(becomes(sm, SmState::not_active));
	EXPECT_EQ(refused, other.order(ib::sm_info_handover));
	EXPECT_EQ(refused, other.order(ib::sm_info_discover));
	EXPECT_EQ(refused, other.order(ib::sm_info_disable));
	other.state = SmState::not_active;
	EXPECT_EQ(0u, other.order(ib::sm_info_standby));
	// There is no other active master, so DISCOVER or its own timeout makes the manager master.
	other.order(ib::sm_info_discover);
	ASSERT_TRUE(becomes(sm, SmState::master));
	EXPECT_EQ(refused, other.order(ib::sm_info_disable)) << "a master obeys nobody";
	EXPECT_EQ(refused, other.order(ib::sm_info_standby));
	EXPECT_EQ(SmState::master, sm.status().state);
}

} // namespace
} // namespace weft::sm
