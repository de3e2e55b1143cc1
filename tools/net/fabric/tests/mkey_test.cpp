// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that an M_Key protects a port as its protection level requires, and no longer than its
// lease period.
#include <gtest/gtest.h>

#include "net/fabric/mkey_guard.hpp"
#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using namespace std::chrono_literals;
using ib::MadMethod;

constexpr std::uint64_t kKey = 0x77;

struct Mkey : ::testing::Test {
	Mkey() { info.mkey = kKey; }

	bool admits(MadMethod method, std::uint64_t mkey, bool trusted = false)
	{
		ib::Smp smp{};
		smp.header.method = static_cast<std::uint8_t>(method);
		smp.mkey = mkey;
		return guard.admits(info, smp, trusted, now);
	}

	ib::PortInfo info{};
	MkeyGuard guard;
	MkeyGuard::TimePoint now{};
};

TEST_F(Mkey, ZeroMkeyGivesNoProtection)
{
	info.mkey = std::uint64_t{0};
	info.set_mkey_protect(3);
	EXPECT_TRUE(admits(MadMethod::set, 5));
	EXPECT_EQ(info.mkey_violations, 0u);
}

TEST_F(Mkey, ProtectionLevelDeterminesTheRefusedMethods)
{
	for (unsigned level = 0; level < 4; level++) {
		SCOPED_TRACE(level);
		info.set_mkey_protect(level);
		EXPECT_TRUE(admits(MadMethod::set, kKey));
		EXPECT_FALSE(admits(MadMethod::set, 5));
		EXPECT_FALSE(admits(MadMethod::trap_repress, 5));
		EXPECT_EQ(admits(MadMethod::get, 5), level < 2);
		EXPECT_TRUE(admits(MadMethod::get, kKey));
		EXPECT_TRUE(admits(MadMethod::get, 5, true)) << "the node itself";
		EXPECT_FALSE(admits(MadMethod::set, 5, true)) << "it reads, and changes nothing";
		EXPECT_FALSE(admits(MadMethod::trap_repress, 5, true));
	}
}

TEST_F(Mkey, ProtectedMkeyReadsAsZero)
{
	for (unsigned level = 0; level < 4; level++) {
		SCOPED_TRACE(level);
		ib::PortInfo shown = info;
		shown.set_mkey_protect(level);
		MkeyGuard::conceal(shown, ib::be64(5));
		EXPECT_EQ(shown.mkey, level != 0 ? 0 : kKey);
		shown.mkey = kKey;
		MkeyGuard::conceal(shown, ib::be64(kKey));
		EXPECT_EQ(shown.mkey, kKey);
	}
}

TEST_F(Mkey, ViolationCounterSaturates)
{
	info.set_mkey_protect(2);
	admits(MadMethod::get, 1);
	EXPECT_EQ(info.mkey_violations, 1u);
	info.mkey_violations = std::uint16_t{0xffff};
	admits(MadMethod::get, 1);
	EXPECT_EQ(info.mkey_violations, 0xffffu);
}

TEST_F(Mkey, LeasePeriodStartsAtTheFirstViolation)
{
	info.set_mkey_protect(3);
	info.mkey_lease_period = std::uint16_t{10};
	now += 1h;
	EXPECT_FALSE(admits(MadMethod::get, 5)) << "nothing ran before a violation";
	now += 9s;
	EXPECT_FALSE(admits(MadMethod::get, 5)) << "a second violation starts nothing anew";
	now += 1s;
	EXPECT_TRUE(admits(MadMethod::get, 5));
	EXPECT_EQ(info.mkey_protect(), 0);
	EXPECT_FALSE(admits(MadMethod::set, 5)) << "the key still stands";
	EXPECT_EQ(info.mkey, kKey);
}

TEST_F(Mkey, CorrectMkeyStopsTheLeasePeriod)
{
	info.set_mkey_protect(2);
	info.mkey_lease_period = std::uint16_t{10};
	EXPECT_FALSE(admits(MadMethod::get, 5));
	now += 9s;
	EXPECT_TRUE(admits(MadMethod::get, kKey));
	now += 9s;
	EXPECT_FALSE(admits(MadMethod::get, 5)) << "a new lease begins here";
	now += 9s;
	EXPECT_FALSE(admits(MadMethod::get, 5));
}

TEST_F(Mkey, LeasePeriodOfZeroNeverExpires)
{
	info.set_mkey_protect(2);
	EXPECT_FALSE(admits(MadMethod::get, 5));
	now += 1000h;
	EXPECT_FALSE(admits(MadMethod::get, 5));
}

// The same applies to a switch, whose port 0 holds the key for all ports.
TEST(SwitchMkey, MkeyOfPort0ProtectsAllPorts)
{
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Port &end = fabric.add_port("node");
	fabric.connect(end, sw.port(1));
	testing::MadNode node(end);
	const auto with_key = [](std::uint64_t mkey) {
		return [mkey](ib::Smp &smp) { smp.mkey = mkey; };
	};

	auto answer = node.ask({1}, MadMethod::get, ib::attr_port_info, 0);
	ASSERT_TRUE(answer);
	ib::PortInfo info = ib::smp_attribute<ib::PortInfo>(*answer);
	const auto set = [&](unsigned level, std::uint64_t mkey) {
		return node.ask({1}, MadMethod::set, ib::attr_port_info, 0, [&](ib::Smp &smp) {
			info.mkey = kKey;
			info.set_mkey_protect(level);
			info.set_state(ib::PortState::nop);
			info.set_phys_state(ib::PhysState::nop);
			ib::smp_attribute<ib::PortInfo>(smp) = info;
			smp.mkey = mkey;
		});
	};
	answer = set(1, 0);
	ASSERT_TRUE(answer);
	EXPECT_EQ(node.status(*answer), 0u);

	answer = node.ask({1}, MadMethod::get, ib::attr_port_info, 0, with_key(5));
	ASSERT_TRUE(answer);
	EXPECT_EQ(ib::smp_attribute<ib::PortInfo>(*answer).mkey, 0u);
	answer = node.ask({1}, MadMethod::get, ib::attr_port_info, 0, with_key(kKey));
	ASSERT_TRUE(answer);
	EXPECT_EQ(ib::smp_attribute<ib::PortInfo>(*answer).mkey, kKey);
	ASSERT_TRUE(set(2, kKey));

	// An SMP with the wrong key gets no answer, so the next answer belongs to the SMP with the
	// right key.
	ib::Smp wrong{};
	wrong.header.base_version = 1;
	wrong.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
	wrong.header.class_version = 1;
	wrong.header.method = static_cast<std::uint8_t>(MadMethod::get);
	wrong.header.hop_cnt = 1;
	wrong.header.tid = std::uint64_t{0xbad};
	wrong.header.attr_id = std::uint16_t{ib::attr_node_info};
	wrong.dr_slid = ib::lid_permissive;
	wrong.dr_dlid = ib::lid_permissive;
	wrong.initial_path[1] = 1;
	ASSERT_TRUE(node.mads.send_directed(wrong));
	answer = node.ask({1}, MadMethod::get, ib::attr_port_info, 0, with_key(kKey));
	ASSERT_TRUE(answer) << "or an answer to the wrong key came first";
	EXPECT_EQ(ib::smp_attribute<ib::PortInfo>(*answer).mkey_violations, 1u);
}

} // namespace
} // namespace weft::fabric
