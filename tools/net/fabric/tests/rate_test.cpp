// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a link trains at the highest rate that its cable supports and both its ports have
// enabled (LinkWidthEnabled, LinkSpeedEnabled, LinkSpeedExtEnabled; IBA 14.2.5.6).
#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using namespace testing;
using ib::MadMethod;

struct Rates : ::testing::Test {
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Port &a = fabric.add_port("a");
	Port &b = fabric.add_port("b");
	Link &link_a = fabric.connect(a, sw.port(1));
	Link &link_b = fabric.connect(b, sw.port(2));
	MadNode sm{a};
	MadNode node{b, 0x200};

	// Changes a port of the switch as ibportstate does: it reads the attributes, changes them,
	// and writes them back.
	void set(std::uint32_t port, const std::function<void(ib::PortInfo &)> &change)
	{
		auto answer = sm.ask({1}, MadMethod::get, ib::attr_port_info, port);
		ASSERT_TRUE(answer);
		auto info = ib::smp_attribute<ib::PortInfo>(*answer);
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		change(info);
		answer = sm.ask({1}, MadMethod::set, ib::attr_port_info, port,
				[&](ib::Smp &smp) { ib::smp_attribute<ib::PortInfo>(smp) = info; });
		ASSERT_TRUE(answer);
		ASSERT_EQ(0u, MadNode::status(*answer));
	}
	void reset(std::uint32_t port)
	{
		set(port, [](ib::PortInfo &info) { info.set_phys_state(ib::PhysState::disabled); });
		set(port, [](ib::PortInfo &info) { info.set_phys_state(ib::PhysState::polling); });
	}
	ib::Rate rate_of(const ib::PortInfo &info)
	{
		return ib::link_rate(info.link_width_active, info.speed_active(),
				     info.speed_ext_active());
	}
	void expect_rate(ib::Rate rate)
	{
		EXPECT_EQ(rate, rate_of(sw.port_info(2)));
		EXPECT_EQ(rate, rate_of(node.mads.port_info())) << "at the other end";
	}
};

TEST_F(Rates, LinkTrainsAtTheEnabledWidth)
{
	expect_rate(ib::Rate::gbps_40);
	set(2, [](ib::PortInfo &info) { info.link_width_enabled = ib::width_1x; });
	expect_rate(ib::Rate::gbps_40);
	const auto downed = sw.port(2).counters().link_downed.load();
	reset(2);
	expect_rate(ib::Rate::gbps_10);
	EXPECT_EQ(ib::width_1x, sw.port_info(2).link_width_active);
	EXPECT_EQ(ib::width_1x, sw.port_info(2).link_width_enabled);
	EXPECT_EQ(downed + 1, sw.port(2).counters().link_downed);
	set(2, [](ib::PortInfo &info) { info.link_width_enabled = 0xff; });
	reset(2);
	expect_rate(ib::Rate::gbps_40);
}

TEST_F(Rates, LinkTrainsAtTheFastestEnabledSpeed)
{
	set(2, [](ib::PortInfo &info) {
		info.set_speed_enabled(ib::speed_sdr | ib::speed_ddr);
		info.set_state(ib::PortState::down);
	});
	expect_rate(ib::Rate::gbps_20);
	EXPECT_EQ(ib::speed_ddr, sw.port_info(2).speed_active());
	set(2, [](ib::PortInfo &info) {
		info.set_speed_enabled(ib::speed_sdr);
		info.link_width_enabled = ib::width_1x;
		info.set_state(ib::PortState::down);
	});
	expect_rate(ib::Rate::gbps_2_5);
	// The other link has not changed.
	EXPECT_EQ(ib::Rate::gbps_40, rate_of(sw.port_info(1)));
}

TEST_F(Rates, LinkStaysDownWithoutACommonRate)
{
	set(2, [](ib::PortInfo &info) { info.link_width_enabled = ib::width_1x; });
	b.enable_rates({.widths = ib::width_4x, .speeds = 0xf, .speeds_ext = 0});
	reset(2);
	EXPECT_FALSE(link_b.up());
	EXPECT_EQ(ib::PortState::down, sw.port_info(2).state());
	EXPECT_EQ(ib::PhysState::polling, sw.port_info(2).phys_state());
	set(2, [](ib::PortInfo &info) { info.link_width_enabled = 0xff; });
	EXPECT_TRUE(link_b.up());
	expect_rate(ib::Rate::gbps_40);
}

TEST_F(Rates, ExtendedSpeedsCanBeDisabled)
{
	link_b.set_rate({ib::width_4x, ib::speed_qdr, ib::speed_edr}, ib::Mtu::mtu_4096);
	expect_rate(ib::Rate::gbps_100);
	set(2, [](ib::PortInfo &info) {
		info.speed_ext_enabled = ib::speed_fdr;
		info.set_state(ib::PortState::down);
	});
	expect_rate(ib::Rate::gbps_56);
	set(2, [](ib::PortInfo &info) {
		info.speed_ext_enabled = 30;
		info.set_state(ib::PortState::down);
	});
	expect_rate(ib::Rate::gbps_40);
	set(2, [](ib::PortInfo &info) { info.speed_ext_enabled = 31; });
	reset(2);
	expect_rate(ib::Rate::gbps_100);
}

TEST_F(Rates, LinkTrainsAtTheFullWidthOfA12xCable)
{
	link_b.set_rate({ib::width_12x, ib::speed_qdr, ib::speed_ext_none}, ib::Mtu::mtu_4096);
	expect_rate(ib::Rate::gbps_120);
}

} // namespace
} // namespace weft::fabric
