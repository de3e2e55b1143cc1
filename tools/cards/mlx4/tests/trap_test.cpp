// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the card sends traps about M_Key, P_Key and Q_Key violations and changed capabilities
// to the subnet manager. The traps are rate-limited and repeated until the manager represses them.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "cards/mlx4/tests/tiny_driver.hpp"
#include "cards/hca/trap_sender.hpp"
#include "net/fabric/mad_packet.hpp"
#include <ib/smp.hpp>

namespace weft::mlx4::testing
{
namespace
{

using namespace std::chrono_literals;
using hw::mlx4::SetPort;

constexpr ib::Lid kLid = 5;
constexpr ib::Lid kManager = 1;
// Traps are 4.096 us * 2^12 = 16.8 ms apart. This is short, but longer than the time between two
// calls of a test.
constexpr unsigned kSubnetTimeout = 12;
constexpr auto kInterval = std::chrono::nanoseconds(4096 << kSubnetTimeout);

// The subnet manager's end of the link. Everything runs on the test's thread.
class ManagerSink final : public fabric::PortSink
{
public:
	struct Trap {
		Clock::time_point when;
		fabric::MadAddress address;
		ib::Smp smp;
		ib::Notice notice{};
		template<class Details>
		Details details() const
		{
			Details details;
			std::memcpy(&details, notice.details, sizeof(details));
			return details;
		}
	};
	std::deque<Trap> traps;
	unsigned others = 0;

private:
	void receive(fabric::Packet &&packet) override
	{
		const auto mad = fabric::mad_of_packet(packet);
		if (!mad || !mad->mad.header.is_method(ib::MadMethod::trap)) {
			++others;
			return;
		}
		Trap trap{Environment::host().now(), mad->address,
			  reinterpret_cast<const ib::Smp &>(mad->mad)};
		std::memcpy(&trap.notice, trap.smp.data, ib::notice_smp_bytes);
		traps.push_back(trap);
	}
	void link_changed(bool) override {}
};

class TrapTest : public ::testing::Test
{
public:
	TrapTest()
	{
		driver.bring_up_events();
		driver.peers[0]->attach(manager);
		driver.peers[0]->enable();
		driver.command(Opcode::init_port, 1);
		driver.host.loop().poll();
		ib::PortInfo info = this->info();
		info.lid = kLid;
		info.sm_lid = kManager;
		info.set_subnet_timeout(kSubnetTimeout);
		set(info);
	}
	~TrapTest() override { driver.peers[0]->detach(); }

	ib::PortInfo info() { return driver.context().port(1)->info(); }
	void set(ib::PortInfo info, std::uint64_t mkey = 0)
	{
		ib::Smp smp = request(ib::MadMethod::set, ib::attr_port_info, mkey);
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		ib::smp_attribute<ib::PortInfo>(smp) = info;
		bool handled = false;
		const auto answer = driver.context().management.wire_smp(1, smp, kManager, handled);
		ASSERT_TRUE(answer);
		ASSERT_EQ(answer->header.status, 0);
	}
	ib::Smp request(ib::MadMethod method, std::uint16_t attribute, std::uint64_t mkey = 0)
	{
		const ib::Mad mad = driver.mad(ib::MgmtClass::subn_lid_routed, method, attribute);
		ib::Smp smp = reinterpret_cast<const ib::Smp &>(mad);
		smp.mkey = mkey;
		return smp;
	}
	// Returns the next trap that the subnet manager receives.
	std::optional<ManagerSink::Trap> next()
	{
		if (!driver.host.loop().run_until([&] { return !manager.traps.empty(); }))
			return std::nullopt;
		const auto trap = manager.traps.front();
		manager.traps.pop_front();
		return trap;
	}
	// Returns true if the card handles the manager's TrapRepress itself.
	bool repress(const ib::Smp &trap, std::uint64_t mkey = 0)
	{
		ib::Smp smp = trap;
		smp.header.method = static_cast<std::uint8_t>(ib::MadMethod::trap_repress);
		smp.mkey = mkey;
		bool handled = false;
		EXPECT_FALSE(driver.context().management.wire_smp(1, smp, kManager, handled))
			<< "has no answer";
		return handled;
	}
	// Returns the number of traps during several intervals without new events.
	std::size_t silence()
	{
		driver.host.loop().run_until([] { return false; }, 4 * kInterval);
		return manager.traps.size();
	}
	void set_capabilities(std::uint32_t mask)
	{
		Mailbox mailbox(0x100);
		SetPort::capability_mask.set(mailbox.data(), mask);
		ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, mailbox).status, Status::ok);
	}
	void violate(ib::TrapNumber trap, std::uint32_t source_qp = 0x1234)
	{
		packet::Headers headers;
		headers.lrh.slid = ib::Lid{9};
		headers.lrh.dlid = kLid;
		headers.lrh.set_sl(3);
		headers.bth.opcode = ib::opcode_ud_send_only;
		headers.bth.pkey = ib::Pkey{0x8123};
		headers.bth.set_dest_qp(0x48);
		headers.deth.qkey = 0xfeedu;
		headers.deth.src_qp = source_qp;
		headers.has_grh = true;
		headers.grh.sgid = ib::Gid::from_parts(ib::gid_prefix_link_local, 0x9);
		driver.context().management.key_violation(1, trap, headers);
	}

	ManagerSink manager;
	TinyDriver driver;
};

TEST_F(TrapTest, CapabilityChangeSendsATrap)
{
	const std::uint32_t before = info().capability_mask;
	set_capabilities(before);
	EXPECT_EQ(silence(), 0u) << "nothing changed";
	set_capabilities(before | ib::port_cap_is_sm);
	const auto trap = next();
	ASSERT_TRUE(trap);
	EXPECT_EQ(trap->address.slid, kLid);
	EXPECT_EQ(trap->address.dlid, kManager);
	EXPECT_EQ(trap->address.dest_qp, 0u);
	EXPECT_EQ(trap->address.vl, ib::vl_management);
	EXPECT_EQ(trap->smp.header.attr_id, ib::attr_notice);
	EXPECT_EQ(trap->smp.header.cls(), ib::MgmtClass::subn_lid_routed);
	EXPECT_EQ(trap->notice.generic_type, 0x84) << "generic, informational";
	EXPECT_EQ(trap->notice.producer, 1u) << "channel adapter";
	EXPECT_EQ(trap->notice.trap_number, 144u);
	EXPECT_EQ(trap->notice.issuer_lid, kLid);
	const auto details = trap->details<ib::CapabilityChangeDetails>();
	EXPECT_EQ(details.lid, kLid);
	EXPECT_EQ(details.capability_mask, before | ib::port_cap_is_sm);
	EXPECT_EQ(details.change_flags, 0u);
}

TEST_F(TrapTest, NodeDescriptionChangeSendsATrap)
{
	Mailbox text(64, 0);
	text[0] = 'x';
	ASSERT_EQ(driver.command(Opcode::set_node, 1, 0, text).status, Status::ok);
	const auto trap = next();
	ASSERT_TRUE(trap);
	EXPECT_EQ(trap->notice.trap_number, 144u);
	const auto details = trap->details<ib::CapabilityChangeDetails>();
	EXPECT_EQ(details.other_local_changes, 1);
	EXPECT_EQ(details.change_flags, ib::CapabilityChangeDetails::node_description_changed);
	EXPECT_TRUE(repress(trap->smp));
	ASSERT_EQ(driver.command(Opcode::set_node, 1, 0, text).status, Status::ok);
	EXPECT_EQ(silence(), 0u) << "the same again";
}

TEST_F(TrapTest, MkeyViolationSendsATrap)
{
	ib::PortInfo guarded = info();
	guarded.mkey = std::uint64_t{0x77};
	guarded.set_mkey_protect(1);
	set(guarded);

	ib::Smp wrong = request(ib::MadMethod::set, ib::attr_port_info, 0x66);
	wrong.header.attr_mod = 1;
	bool handled = false;
	EXPECT_FALSE(driver.context().management.wire_smp(1, wrong, 9, handled));
	EXPECT_TRUE(handled);
	EXPECT_EQ(info().mkey_violations, 1u);
	auto trap = next();
	ASSERT_TRUE(trap);
	EXPECT_EQ(trap->notice.trap_number, 256u);
	EXPECT_EQ(trap->notice.generic_type, 0x82) << "generic, security";
	auto details = trap->details<ib::BadMkeyDetails>();
	EXPECT_EQ(details.lid, 9u);
	EXPECT_EQ(details.method, 2);
	EXPECT_EQ(details.attr_id, ib::attr_port_info);
	EXPECT_EQ(details.attr_mod, 1u);
	EXPECT_EQ(details.mkey, 0x66u);
	EXPECT_EQ(details.dr_hops, 0);
	EXPECT_TRUE(repress(trap->smp, 0x77));

	// A request with a directed route of 40 hops: the notice contains 30 of them.
	wrong.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
	wrong.dr_slid = ib::lid_permissive;
	wrong.dr_dlid = ib::lid_permissive;
	wrong.header.hop_cnt = 40;
	wrong.header.hop_ptr = 40;
	for (unsigned hop = 1; hop < 40; ++hop)
		wrong.return_path[hop] = static_cast<std::uint8_t>(hop);
	EXPECT_FALSE(driver.context().management.wire_smp(1, wrong, ib::lid_permissive, handled));
	trap = next();
	ASSERT_TRUE(trap);
	details = trap->details<ib::BadMkeyDetails>();
	EXPECT_EQ(details.dr_slid, ib::lid_permissive);
	EXPECT_EQ(details.dr_hops, 0xc0 | 30);
	EXPECT_EQ(details.dr_return_path[0], 1);
	EXPECT_EQ(details.dr_return_path[29], 30);
}

TEST_F(TrapTest, PkeyAndQkeyViolationsSendATrap)
{
	violate(ib::trap_bad_pkey);
	auto trap = next();
	ASSERT_TRUE(trap);
	EXPECT_EQ(trap->notice.trap_number, 257u);
	EXPECT_EQ(trap->notice.generic_type, 0x82);
	auto details = trap->details<ib::BadKeyDetails>();
	EXPECT_EQ(details.slid, 9u);
	EXPECT_EQ(details.dlid, kLid);
	EXPECT_EQ(details.key, 0x8123u);
	EXPECT_EQ(details.sl_source_qp, 0x30001234u);
	EXPECT_EQ(details.dest_qp, 0x48u);
	EXPECT_EQ(details.sgid.interface_id(), 9u);
	EXPECT_TRUE(repress(trap->smp));
	violate(ib::trap_bad_qkey);
	trap = next();
	ASSERT_TRUE(trap);
	EXPECT_EQ(trap->notice.trap_number, 258u);
	EXPECT_EQ(trap->details<ib::BadKeyDetails>().key, 0xfeedu);
}

TEST_F(TrapTest, TrapIsRepeatedUntilTrapRepress)
{
	violate(ib::trap_bad_pkey);
	const auto first = next();
	const auto second = next();
	ASSERT_TRUE(first && second);
	EXPECT_EQ(first->smp.header.tid, second->smp.header.tid);
	EXPECT_GE(second->when - first->when, kInterval);
	ib::Smp other = first->smp;
	other.header.tid = std::uint64_t{0x4711};
	EXPECT_FALSE(repress(other)) << "a trap of the driver's: its QP0 gets the answer";
	EXPECT_TRUE(next()) << "still not repressed";
	EXPECT_TRUE(repress(first->smp));
	EXPECT_EQ(silence(), 0u);
}

TEST_F(TrapTest, TrapRepressRequiresTheMkey)
{
	ib::PortInfo guarded = info();
	guarded.mkey = std::uint64_t{0x77};
	set(guarded);
	violate(ib::trap_bad_pkey);
	const auto trap = next();
	ASSERT_TRUE(trap);
	repress(trap->smp, 0x66);
	EXPECT_EQ(info().mkey_violations, 1u);
	EXPECT_TRUE(next());
	EXPECT_TRUE(repress(trap->smp, 0x77));
}

TEST_F(TrapTest, TrapRepressForwardedByTheDriverThroughMadIfcStopsTheTrap)
{
	violate(ib::trap_bad_pkey);
	const auto trap = next();
	ASSERT_TRUE(trap);
	ib::Smp smp = trap->smp;
	smp.header.method = static_cast<std::uint8_t>(ib::MadMethod::trap_repress);
	const auto *bytes = reinterpret_cast<const std::uint8_t *>(&smp);
	EXPECT_EQ(driver.command(Opcode::mad_ifc, 1, 0, {bytes, 256}, 256).status, Status::ok);
	EXPECT_EQ(silence(), 0u);
}

TEST_F(TrapTest, TrapRateIsLimited)
{
	const auto begin = Environment::host().now();
	for (unsigned i = 0; i < 10000; ++i)
		violate(i & 1 ? ib::trap_bad_pkey : ib::trap_bad_qkey, i);
	std::set<unsigned> kinds;
	std::uint32_t last_qp = 0;
	for (unsigned i = 0; i < 3; ++i) {
		const auto trap = next();
		ASSERT_TRUE(trap);
		kinds.insert(trap->notice.trap_number);
		last_qp =
			std::max(last_qp, trap->details<ib::BadKeyDetails>().sl_source_qp.value() &
						  0xffffff);
	}
	EXPECT_GE(Environment::host().now() - begin, 2 * kInterval);
	EXPECT_EQ(kinds.size(), 2u) << "none starves the other";
	EXPECT_EQ(last_qp, 9999u) << "the latest cause is told";
}

TEST_F(TrapTest, NumberOfRepetitionsOfATrapIsLimited)
{
	violate(ib::trap_bad_pkey);
	unsigned count = 0;
	while (driver.host.loop().run_until([&] { return !manager.traps.empty(); },
					    10 * kInterval)) {
		manager.traps.pop_front();
		++count;
	}
	EXPECT_EQ(count, 1 + TrapSender::kMaxRepeats);
}

TEST_F(TrapTest, NoTrapIsSentIfTheSmLidIsZeroOrTheTrapCapabilityIsCleared)
{
	set_capabilities(info().capability_mask & ~std::uint32_t{ib::port_cap_trap});
	violate(ib::trap_bad_pkey);
	EXPECT_EQ(silence(), 0u);
	set_capabilities(CardPort::kDefaultCapabilities);
	while (silence()) {
		repress(manager.traps.front().smp);
		manager.traps.clear();
	}
	ib::PortInfo orphan = info();
	orphan.sm_lid = std::uint16_t{0};
	set(orphan);
	violate(ib::trap_bad_pkey);
	EXPECT_EQ(silence(), 0u);
}

TEST_F(TrapTest, ClosingAPortStopsItsTraps)
{
	violate(ib::trap_bad_pkey);
	ASSERT_TRUE(next());
	ASSERT_EQ(driver.command(Opcode::close_port, 1).status, Status::ok);
	ASSERT_EQ(driver.command(Opcode::init_port, 1).status, Status::ok);
	EXPECT_EQ(silence(), 0u);
}

} // namespace
} // namespace weft::mlx4::testing
