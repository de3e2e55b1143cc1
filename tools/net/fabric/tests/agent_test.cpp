// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs the conformance tests for subnet management agents (agent_rules.hpp) on switches and on
// software end nodes.
#include "net/fabric/tests/agent_rules.hpp"

#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric::testing
{
namespace
{

// Sends an SMP to the peer, which accepts it although it has no LID yet.
void send_by_lid(Port &port, const ib::Smp &smp)
{
	MadAddress address;
	address.dlid = ib::lid_permissive;
	Packet packet = make_mad_packet(address, reinterpret_cast<const ib::Mad &>(smp));
	EXPECT_EQ(port.send(packet), Sent::done);
}

// A switch that is queried through its port 1. The port under test is another one.
template<PortKind of_port, unsigned of_number>
struct SwitchPort {
	static constexpr PortKind kKind = of_port;
	static constexpr unsigned kNumber = of_number;
	static constexpr bool kReachedOtherwise = true;

	std::optional<ib::Smp> ask(ib::Smp request)
	{
		request.header.tid = ++manager.tid;
		if (request.header.cls() == ib::MgmtClass::subn_lid_routed) {
			send_by_lid(a, request);
		} else {
			request.header.hop_cnt = 1;
			request.initial_path[1] = 1;
			if (!manager.mads.send_directed(request))
				return std::nullopt;
		}
		/* The request has been answered on this thread. */
		if (manager.received.size() == 0)
			return std::nullopt;
		const auto answer = manager.received.next();
		return reinterpret_cast<const ib::Smp &>(answer->mad);
	}
	ib::PortInfo key_port() const { return sw.port_info(0); }
	void settle() {}

	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Port &a = fabric.add_port("a");
	Port &b = fabric.add_port("b");
	Link &link_a = fabric.connect(a, sw.port(1));
	Link &link_b = fabric.connect(b, sw.port(2));
	MadNode manager{a};
	MadNode other{b};
};

// A software end node that sends SMPs to itself. SMPs that it does not answer are returned to the
// test.
struct EndNode {
	static constexpr PortKind kKind = PortKind::channel_adapter;
	static constexpr unsigned kNumber = 1;
	static constexpr bool kReachedOtherwise = true;

	std::optional<ib::Smp> ask(ib::Smp request)
	{
		if (request.header.cls() == ib::MgmtClass::subn_lid_routed)
			send_by_lid(b, request);
		else if (!node.mads.send_directed(request))
			return std::nullopt;
		if (node.received.size() == 0)
			return std::nullopt;
		const auto answer = node.received.next();
		if (!answer->mad.header.is_response())
			return std::nullopt;
		return reinterpret_cast<const ib::Smp &>(answer->mad);
	}
	ib::PortInfo key_port() const { return node.mads.port_info(); }
	void settle() {}

	Fabric fabric;
	Port &a = fabric.add_port("a");
	Port &b = fabric.add_port("b");
	Link &link = fabric.connect(a, b);
	PacketNode peer{b};
	MadNode node{a};
};

using Nodes = ::testing::Types<SwitchPort<PortKind::switch_external, 2>,
			       SwitchPort<PortKind::switch_management, 0>, EndNode>;
INSTANTIATE_TYPED_TEST_SUITE_P(Fabric, AgentRules, Nodes);

} // namespace
} // namespace weft::fabric::testing
