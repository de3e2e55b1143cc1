// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that nodes that are not members of a partition cannot send to it, even if they change their
// own P_Key tables, because the switch drops their datagrams.
#include <algorithm>

#include <gtest/gtest.h>

#include <ib/smi.hpp>

#include "net/fabric/mad_packet.hpp"
#include "sm/tests/three_hosts.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;
using ib::MadMethod;
using Membership = Partition::Membership;

constexpr ib::Pkey kStorageFull = 0x8010;
constexpr ib::Pkey kSecretFull = 0x8020;

// In "storage", the first host is a full member and the others are limited members. "private"
// contains the first two hosts.
struct PartitionTest : ThreeHosts {
	static Config config()
	{
		Config config;
		Partition storage;
		storage.name = "storage";
		storage.pkey = kStorageFull;
		storage.others = Membership::limited;
		storage.members = {{0x1001, Membership::full}};
		Partition secret;
		secret.name = "private";
		secret.pkey = kSecretFull;
		secret.others = Membership::none;
		secret.members = {{0x1001, Membership::full}, {0x2001, Membership::full}};
		config.partitions = {Partition{}, storage, secret};
		return config;
	}
	// Writes the host's own table, as any guest can by its own agent.
	static void write_own_table(Host &host, std::initializer_list<ib::Pkey> pkeys)
	{
		host.received.clear();
		const auto answer =
			host.ask({}, MadMethod::set, ib::attr_pkey_table, 0, [&](ib::Smp &smp) {
				std::ranges::copy(pkeys,
						  ib::smp_attribute<ib::PkeyTable>(smp).pkey);
			});
		ASSERT_TRUE(answer);
		ASSERT_EQ(0u, MadNode::status(*answer));
	}
	// Returns true if a datagram with the sender's P_Key of a partition passes all switches.
	// The packet arrives at once, so this function does not wait.
	static bool arrives(Host &from, Host &to, ib::Pkey pkey)
	{
		const auto received = [&] { return to.mads.port().counters().rcv_packets.load(); };
		fabric::MadAddress address;
		address.dlid = to.lid();
		address.src_qp = 1;
		address.dest_qp = 1;
		address.pkey = pkey;
		ib::Mad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = 0x30;
		mad.header.method = 0x03;
		const auto before = received();
		EXPECT_TRUE(from.mads.send(address, mad));
		return received() != before;
	}
};

TEST_F(PartitionTest, SwitchDropsDatagramsOfNonMembers)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	EXPECT_TRUE(arrives(b, a, kSecretFull));
	const auto &counters = right.port(2).counters();
	ASSERT_EQ(0u, counters.rcv_constraint_errors);
	write_own_table(c, {ib::pkey_default_full, kSecretFull});
	EXPECT_FALSE(arrives(c, a, kSecretFull));
	EXPECT_EQ(1u, counters.rcv_constraint_errors);
	EXPECT_TRUE(arrives(c, a, ib::pkey_default_full)) << "what it is a member of goes on";
	// A datagram to this host does not arrive either.
	EXPECT_FALSE(arrives(b, c, kSecretFull));
	EXPECT_EQ(1u, counters.xmit_constraint_errors);
}

TEST_F(PartitionTest, LimitedMemberCannotMakeItselfAFullMember)
{
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config())));
	EXPECT_TRUE(arrives(b, a, kStorageFull));
	EXPECT_TRUE(arrives(a, b, kStorageFull));
	EXPECT_FALSE(arrives(b, c, kStorageFull)) << "both are limited ones";
	write_own_table(b, {ib::pkey_default_full, kStorageFull});
	EXPECT_FALSE(arrives(b, c, kStorageFull));
	EXPECT_FALSE(arrives(b, a, kStorageFull));
}

TEST_F(PartitionTest, PartitionsAreEnforcedOnlyAtSwitchPortsThatConnectHosts)
{
	constexpr auto both = ib::PortInfo::enforce_inbound | ib::PortInfo::enforce_outbound;
	auto &sm = lab.start(left, 7, config());
	ASSERT_TRUE(Lab::settled(sm));
	for (unsigned port : {1u, 7u})
		EXPECT_EQ(both, left.port_info(port).vl_oper_enforcement & both) << port;
	EXPECT_EQ(0, left.port_info(8).vl_oper_enforcement & both);
	// The next node at this port gets its own P_Key table.
	const auto sweeps = sm.status().sweeps;
	lab.links[2]->set_plugged(false);
	lab.links[2]->set_plugged(true);
	ASSERT_TRUE(sm.wait_for(
		[&](const auto &status) {
			return status.sweeps > sweeps && status.complete && c.active();
		},
		kTimeLimit));
	EXPECT_TRUE(arrives(c, a, kStorageFull));
}

// A node that responds only to NodeInfo.
class ShyNode final : public fabric::PortSink
{
public:
	ShyNode(fabric::Port &port, Loop &loop) : asked(&loop), port_(port)
	{
		port_.attach(*this);
		port_.enable();
	}
	~ShyNode() override { port_.detach(); }
	void receive(fabric::Packet &&packet) override
	{
		auto mad = fabric::mad_of_packet(packet);
		if (!mad)
			return;
		auto &smp = reinterpret_cast<ib::Smp &>(mad->mad);
		if (smp.header.cls() != ib::MgmtClass::subn_directed_route ||
		    smp.header.attr_id != ib::attr_node_info ||
		    ib::smi_receive(smp, false, 1, 1).action != ib::SmiAction::local)
			return;
		ib::NodeInfo info{};
		info.base_version = 1;
		info.class_version = 1;
		info.node_type = static_cast<std::uint8_t>(ib::NodeType::channel_adapter);
		info.num_ports = 1;
		info.system_image_guid = info.node_guid = 0x5000;
		info.port_guid = 0x5001;
		info.partition_cap = 32;
		info.local_port = 1;
		ib::smp_attribute<ib::NodeInfo>(smp) = info;
		smp.header.method = static_cast<std::uint8_t>(MadMethod::get_resp);
		ib::smi_return(smp, 1);
		auto answer = fabric::make_mad_packet(mad->address.reversed(), mad->mad);
		port_.send(answer);
		asked.push(true);
	}
	void link_changed(bool) override {}
	void credit_available(std::uint8_t) override {}

	fabric::testing::Collected<bool> asked;

private:
	fabric::Port &port_;
};

// The subnet manager knows about the node when it configures the switch port in front of it.
TEST_F(PartitionTest, UnresponsivePortDoesNotBlockTheSubnetSweep)
{
	fabric::Port &port = lab.fabric.add_port("shy");
	ShyNode shy(port, lab.loop);
	lab.fabric.connect(port, right.port(4));
	Config own = config();
	own.smp_timeout = 50ms;
	own.smp_retries = 1;
	auto &sm = lab.start(left, 7, own);
	ASSERT_TRUE(shy.asked.next());
	ASSERT_TRUE(sm.wait_for(
		[&](const auto &) { return a.active() && b.active() && c.active(); }, kTimeLimit));
}

TEST_F(PartitionTest, SaAnswersLimitedMembersOfTheDefaultPartition)
{
	Config config;
	config.partitions[0].others = Membership::limited;
	ASSERT_TRUE(Lab::settled(lab.start(left, 7, config)));
	const auto answer = b.ask_sa(b.request(MadMethod::get, ib::attr_class_port_info, 0));
	ASSERT_TRUE(answer);
	EXPECT_EQ(0, answer->header.status);
	EXPECT_FALSE(arrives(b, a, ib::pkey_default_full));
}

// Only the subnet manager can change an untrusted port; its own node cannot. A subnet manager
// behind such a port is ignored.
TEST_F(PartitionTest, NodeWithAnUntrustedPortCannotWriteItsPortAttributesOrReadTheMkey)
{
	Config config = this->config();
	config.untrusted = {0x2001};
	config.mkey = 0x6b6579;
	b.mads.set_is_sm(true);
	auto &sm = lab.start(left, 7, config);
	ASSERT_TRUE(Lab::settled(sm));
	EXPECT_EQ(ib::SmState::master, sm.status().state);
	EXPECT_EQ(0u, b.received.size()) << "asked for SMInfo";
	EXPECT_TRUE(b.active());
	EXPECT_EQ(config.mkey, b.mads.port_info().mkey);
	EXPECT_EQ(0u, a.mads.port_info().mkey);

	const auto write = [](Host &host, std::uint64_t mkey) {
		return host.ask({}, MadMethod::set, ib::attr_pkey_table, 0, [&](ib::Smp &smp) {
			smp.mkey = mkey;
			ib::smp_attribute<ib::PkeyTable>(smp).pkey[0] = ib::pkey_default_full;
		});
	};
	EXPECT_TRUE(b.ask({}, MadMethod::get, ib::attr_pkey_table));
	auto info = b.ask({}, MadMethod::get, ib::attr_port_info);
	ASSERT_TRUE(info);
	EXPECT_EQ(0u, ib::smp_attribute<ib::PortInfo>(*info).mkey) << "shown to nobody";
	const auto refused = write(b, 0);
	EXPECT_TRUE(!refused || refused->header.is_method(MadMethod::set)) << "no answer";
	EXPECT_TRUE(write(a, 0)->header.is_method(MadMethod::get_resp));
	// The subnet manager continues to work, and writes nothing twice.
	const auto sweeps = sm.status().sweeps;
	sm.request_sweep();
	ASSERT_TRUE(Lab::settled(sm, sweeps));
}

} // namespace
} // namespace weft::sm
