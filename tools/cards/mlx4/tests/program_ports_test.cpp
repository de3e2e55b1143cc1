// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that programs on the host (weft attach) send and receive MADs at the port of a card in
// addition to the driver of its guest.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "cards/mlx4/tests/tiny_driver.hpp"
#include "net/fabric/tests/test_node.hpp"
#include <ib/smp.hpp>

namespace weft::mlx4::testing
{
namespace
{

using hw::mlx4::SetPort;

constexpr ib::Lid kOwnLid = 5, kPeerLid = 9;
constexpr auto kPing = std::uint8_t{0x32};
constexpr ib::Guid kCardGuid = 0x0002c90300000100, kPeerGuid = 0x100;

// A program that takes all MADs, or only responses.
class Program final : public fabric::LocalReceiver
{
public:
	bool receive(const fabric::AddressedMad &mad) override
	{
		if (only_responses && !mad.mad.header.is_response())
			return false;
		received.push_back(mad);
		if (on_receive)
			on_receive(mad.mad);
		return true;
	}
	void port_changed() override { ++changes; }

	bool only_responses = false;
	std::function<void(const ib::Mad &)> on_receive;
	std::deque<fabric::AddressedMad> received;
	unsigned changes = 0;
};

class ProgramOnACard : public ::testing::Test
{
public:
	ProgramOnACard()
	{
		access().set_receiver(program);
		start();
	}
	~ProgramOnACard() override { access().set_receiver(nullptr); }

	void start()
	{
		driver.bring_up_events();
		driver.command(Opcode::init_port, 1);
		poll();
	}
	void activate()
	{
		for (const auto state :
		     {ib::PortState::nop, ib::PortState::armed, ib::PortState::active}) {
			set_state({1}, kOwnLid, state);
			set_state({}, kPeerLid, state);
		}
		ASSERT_TRUE(driver.context().port(1)->active());
		program->received.clear();
	}
	void set_state(std::initializer_list<int> path, ib::Lid lid, ib::PortState state)
	{
		const auto info =
			path.size() ? driver.context().port(1)->info() : peer.mads.port_info();
		const auto answer = peer.ask(
			path, ib::MadMethod::set, ib::attr_port_info, 0, [&](ib::Smp &smp) {
				auto &wanted = ib::smp_attribute<ib::PortInfo>(smp);
				wanted = info;
				wanted.lid = lid;
				wanted.sm_lid = kPeerLid;
				wanted.set_state(state);
				wanted.set_phys_state(ib::PhysState::nop);
			});
		ASSERT_TRUE(answer);
		ASSERT_EQ(peer.status(*answer), 0u);
	}
	void poll()
	{
		while (driver.host.loop().poll()) {
		}
	}
	fabric::LocalAccess &access() { return *driver.card.local_access().at(0); }

	static ib::Smp smp(std::initializer_list<int> path, std::uint16_t attribute)
	{
		ib::Smp made{};
		made.header.base_version = 1;
		made.header.class_version = 1;
		made.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
		made.header.method = static_cast<std::uint8_t>(ib::MadMethod::get);
		made.header.hop_cnt = static_cast<std::uint8_t>(path.size());
		made.header.tid = 0x77;
		made.header.attr_id = attribute;
		made.dr_slid = made.dr_dlid = ib::lid_permissive;
		unsigned hop = 0;
		for (const int out : path)
			made.initial_path[++hop] = static_cast<std::uint8_t>(out);
		return made;
	}
	static ib::Mad ping(std::uint64_t tid)
	{
		ib::Mad made{};
		made.header.base_version = 1;
		made.header.class_version = 1;
		made.header.mgmt_class = kPing;
		made.header.method = static_cast<std::uint8_t>(ib::MadMethod::get);
		made.header.tid = tid;
		return made;
	}
	static fabric::MadAddress to(ib::Lid lid, std::uint32_t qpn)
	{
		fabric::MadAddress address;
		address.dlid = lid;
		address.src_qp = address.dest_qp = qpn;
		return address;
	}
	void send(const ib::Smp &sent)
	{
		access().send_mad(to(ib::lid_permissive, ib::qpn_smi), 0,
				  reinterpret_cast<const ib::Mad &>(sent));
		poll();
	}
	// Returns the GUID in the only response, a NodeInfo.
	ib::Guid node_guid() const
	{
		if (program->received.size() != 1)
			return 0;
		const auto &got = reinterpret_cast<const ib::Smp &>(program->received.front().mad);
		return ib::smp_attribute<ib::NodeInfo>(got).node_guid;
	}
	fabric::PortView view()
	{
		std::optional<fabric::PortView> seen;
		access().describe([&](fabric::PortView &&view) { seen = std::move(view); });
		poll();
		return seen.value_or(fabric::PortView{});
	}
	bool is_sm() { return view().port.capability_mask & ib::port_cap_is_sm; }

	TinyDriver driver{1, hca::make_transport};
	fabric::testing::MadNode peer{*driver.peers[0], kPeerGuid, &driver.host.loop()};
	const std::shared_ptr<Program> program = std::make_shared<Program>();
};

TEST_F(ProgramOnACard, DirectedRouteSmpSentByAHostProgramIsAnsweredByTheLinkPeer)
{
	send(smp({1}, ib::attr_node_info));
	EXPECT_EQ(node_guid(), kPeerGuid);
}

TEST_F(ProgramOnACard, DirectedRouteSmpWithZeroHopsIsAnsweredByTheCard)
{
	send(smp({}, ib::attr_node_info));
	EXPECT_EQ(node_guid(), kCardGuid);
}

TEST_F(ProgramOnACard, SmpToTheCardsOwnLidIsAnsweredByTheCard)
{
	activate();
	ib::Smp own = smp({}, ib::attr_node_info);
	own.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	access().send_mad(to(kOwnLid, ib::qpn_smi), 0, reinterpret_cast<const ib::Mad &>(own));
	poll();
	EXPECT_EQ(node_guid(), kCardGuid);
}

TEST_F(ProgramOnACard, GmpSentByAHostProgramHasTheLidOfTheCardAsSourceLid)
{
	activate();
	access().send_mad(to(kPeerLid, ib::qpn_gsi), 0, ping(1));
	const auto got = peer.received.next();
	ASSERT_TRUE(got);
	EXPECT_EQ(got->address.slid, kOwnLid);
	EXPECT_EQ(got->mad.header.mgmt_class, kPing);
}

TEST_F(ProgramOnACard, HostProgramReceivesOnlyMadsForWhichItHasRegistered)
{
	activate();
	ASSERT_TRUE(peer.mads.send(to(kOwnLid, ib::qpn_gsi), ping(2)));
	poll();
	ASSERT_EQ(program->received.size(), 1u);
	EXPECT_EQ(program->received.front().address.slid, kPeerLid);
	// MADs for which no program has registered are passed to the driver.
	program->only_responses = true;
	ASSERT_TRUE(peer.mads.send(to(kOwnLid, ib::qpn_gsi), ping(3)));
	poll();
	EXPECT_EQ(program->received.size(), 1u);
}

TEST_F(ProgramOnACard, NodeInfoRequestIsAnsweredByTheCardAndNotDeliveredToTheHostProgram)
{
	EXPECT_TRUE(peer.ask({1}, ib::MadMethod::get, ib::attr_node_info));
	EXPECT_TRUE(program->received.empty());
}

TEST_F(ProgramOnACard, DirectedRouteSmInfoRequestIsAnsweredByTheHostProgram)
{
	program->on_receive = [&](const ib::Mad &request) {
		ib::Mad response = request;
		response.header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
		access().send_mad({}, 0, response);
	};
	const auto answer = peer.ask({1}, ib::MadMethod::get, ib::attr_sm_info);
	ASSERT_TRUE(answer);
	EXPECT_EQ(answer->header.attr_id, ib::attr_sm_info);
	EXPECT_EQ(answer->header.hop_ptr, 0);
}

TEST_F(ProgramOnACard, TrapRepressSmpIsNotDeliveredToTheHostProgram)
{
	activate();
	ib::Mad repress{};
	repress.header.base_version = 1;
	repress.header.class_version = 1;
	repress.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	repress.header.method = static_cast<std::uint8_t>(ib::MadMethod::trap_repress);
	repress.header.attr_id = ib::attr_notice;
	access().send_mad(to(kOwnLid, ib::qpn_smi), 0, repress);
	poll();
	EXPECT_TRUE(program->received.empty());
}

TEST_F(ProgramOnACard, IsSmBitThatAHostProgramHasSetSurvivesSetPortAndCardReset)
{
	EXPECT_FALSE(is_sm());
	access().set_is_sm(true);
	EXPECT_TRUE(is_sm());
	Mailbox in(64, 0);
	ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, in).status, Status::ok);
	EXPECT_TRUE(is_sm());
	driver.start_over();
	start();
	EXPECT_TRUE(is_sm());
	access().set_is_sm(false);
	EXPECT_FALSE(is_sm());
}

TEST_F(ProgramOnACard, AttachedProgramCannotClearTheIsSmBitSetByTheDriverInTheGuest)
{
	Mailbox in(64, 0);
	SetPort::capability_mask.set(in.data(), ib::port_cap_is_sm);
	ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, in).status, Status::ok);
	access().set_is_sm(true);
	access().set_is_sm(false);
	EXPECT_TRUE(is_sm());
	Mailbox none(64, 0);
	ASSERT_EQ(driver.command(Opcode::set_port, 1, 0, none).status, Status::ok);
	EXPECT_FALSE(is_sm());
}

TEST_F(ProgramOnACard, PortIsDownWhileNoGuestIsConnected)
{
	driver.host.unplug();
	const fabric::PortView down = view();
	EXPECT_EQ(down.port.state(), ib::PortState::down);
	EXPECT_EQ(down.node.node_guid, kCardGuid);
	access().set_is_sm(true);
	send(smp({1}, ib::attr_node_info));
	EXPECT_TRUE(program->received.empty());

	const unsigned before = program->changes;
	driver.host.plug(driver.card);
	driver.start_over();
	start();
	EXPECT_GT(program->changes, before);
	EXPECT_TRUE(is_sm());
	send(smp({1}, ib::attr_node_info));
	EXPECT_EQ(node_guid(), kPeerGuid);
}

} // namespace
} // namespace weft::mlx4::testing
