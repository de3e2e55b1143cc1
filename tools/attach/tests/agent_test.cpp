// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the MAD agents of programs that `weft attach` has connected to nodes of the fabric: the
// programs register agents, and send and receive MADs with them, as with Linux's umad files.
#include <cerrno>

#include "attach/tests/two_nodes.hpp"

namespace weft::attach
{
namespace
{

using testing::TwoNodes;
using namespace std::chrono_literals;

constexpr std::uint8_t kLidRouted = 0x01, kDirected = 0x81, kPerf = 0x04, kPing = 0x0a;
constexpr std::uint8_t kGet = 0x01, kSet = 0x02, kGetResp = 0x81;

class MadAgents : public TwoNodes
{
protected:
	// A request for NodeInfo by directed route, with zero hops.
	static ib::Smp directed_node_info()
	{
		const ib::Mad request = mad(kDirected, 1, kGet, 0x1234);
		auto smp = reinterpret_cast<const ib::Smp &>(request);
		smp.header.attr_id = std::uint16_t{ib::attr_node_info};
		smp.dr_slid = ib::lid_permissive;
		smp.dr_dlid = ib::lid_permissive;
		return smp;
	}
	static Message directed(std::uint32_t agent, const ib::Smp &smp)
	{
		return message(agent, ib::lid_permissive, reinterpret_cast<const ib::Mad &>(smp),
			       100);
	}
};

TEST_F(MadAgents, SecondAgentForTheSameMethodIsRefused)
{
	const auto first = open(node_a), second = open(node_a);
	const std::uint32_t agent = add(*first, server(kPing, 1, kGet));
	std::uint32_t id = 0;
	EXPECT_EQ(second->add_agent(server(kPing, 1, kGet), id), EINVAL);
	// These registrations differ in the method, the version, the class or the node, so they are
	// permitted.
	add(*second, server(kPing, 1, kSet));
	add(*second, server(kPing, 2, kGet));
	add(*second, server(kPing + 1, 1, kGet));
	add(*open(node_b), server(kPing, 1, kGet));
	EXPECT_EQ(first->remove_agent(agent), 0);
	add(*second, server(kPing, 1, kGet));
}

TEST_F(MadAgents, ClosingThePortUnregistersItsAgents)
{
	auto first = open(node_a);
	add(*first, server(kPing, 1, kGet));
	first.reset();
	add(*open(node_a), server(kPing, 1, kGet));
}

TEST_F(MadAgents, InvalidAgentRegistrationsAreRefused)
{
	const auto port = open(node_a);
	std::uint32_t id = 0;
	AgentRequest request = client(kPing, 1);
	request.qpn = 0;
	EXPECT_EQ(port->add_agent(request, id), EINVAL); // QP0 is for SMPs
	request = client(kDirected, 1);
	request.qpn = 1;
	EXPECT_EQ(port->add_agent(request, id), EINVAL);
	EXPECT_EQ(port->add_agent(client(0x60, 1), id), EINVAL);
	EXPECT_EQ(port->add_agent(client(kPing, 8), id), EINVAL);
	EXPECT_EQ(port->add_agent(client(kPing, 1, 1), id), EINVAL); // the class has no RMPP
	EXPECT_EQ(port->add_agent(client(0x32, 1), id), EINVAL);     // and no OUI is given
	EXPECT_EQ(port->remove_agent(0), EINVAL);
	EXPECT_EQ(port->remove_agent(kMostAgents), EINVAL);
	for (unsigned i = 0; i < kMostAgents; ++i)
		add(*port, client(kPerf, 1));
	EXPECT_EQ(port->add_agent(client(kPerf, 1), id), ENOMEM);
}

TEST_F(MadAgents, UntrustedNodeCannotUseQp0)
{
	const auto untrusted = std::make_shared<NodePort>(loop, a, false);
	const auto port = open(untrusted);
	std::uint32_t id = 0;
	EXPECT_EQ(port->add_agent(client(kDirected, 1), id), EPERM);
	EXPECT_EQ(port->add_agent(client(kLidRouted, 1), id), EPERM);
	const std::uint32_t agent = add(*port, client(kPerf, 1));
	// An agent of QP1 cannot send SMPs either.
	port->take(message(agent, kLidB, mad(kLidRouted, 1, kGet, 1), 100));
	EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(EINVAL));
}

TEST_F(MadAgents, ZeroHopDirectedRouteSmpIsAnsweredLocally)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kDirected, 1));
	ib::Smp smp = directed_node_info();
	port->take(directed(agent, smp));
	const Message answer = next(*port);
	EXPECT_EQ(answer.header.agent, agent);
	EXPECT_EQ(answer.header.status, 0u);
	EXPECT_EQ(answer.header.length, sizeof(UserMad) + sizeof(ib::Mad));
	EXPECT_EQ(mad_in(answer).header.tid & 0xffffffff, 0x1234u);
	EXPECT_EQ(ib::smp_attribute<ib::NodeInfo>(reinterpret_cast<const ib::Smp &>(mad_in(answer)))
			  .node_guid,
		  0xa0u);

	smp.header.tid = std::uint64_t{0x1235};
	smp.header.hop_cnt = 1;
	smp.initial_path[1] = 1;
	port->take(directed(agent, smp));
	const Message other = next(*port);
	EXPECT_EQ(ib::smp_attribute<ib::NodeInfo>(reinterpret_cast<const ib::Smp &>(mad_in(other)))
			  .node_guid,
		  0xb0u);
}

TEST_F(MadAgents, PerfMgtClassPortInfoOfTheLocalAndTheRemotePortCanBeRead)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kPerf, 1));
	for (const ib::Lid to : {kLidA, kLidB}) {
		ib::Mad request = mad(kPerf, 1, kGet, to);
		request.header.attr_id = std::uint16_t{ib::attr_class_port_info};
		port->take(message(agent, to, request, 100));
		const Message answer = next(*port);
		EXPECT_EQ(answer.header.status, 0u);
		EXPECT_EQ(answer.header.lid, to);
		EXPECT_EQ(mad_in(answer).header.method, kGetResp);
	}
}

TEST_F(MadAgents, UnsupportedRequestGetsAnErrorResponse)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	for (const ib::Lid to : {kLidA, kLidB})
		for (const std::uint8_t method : {kGet, kSet}) {
			port->take(message(agent, to, mad(kPing, 1, method, method), 100));
			const Message answer = next(*port);
			EXPECT_EQ(answer.header.status, 0u);
			EXPECT_EQ(answer.header.lid, to);
			EXPECT_EQ(mad_in(answer).header.method, kGetResp);
			EXPECT_EQ(mad_in(answer).header.status,
				  unsigned{ib::mad_status_unsupported_method_attribute});
		}
	// Other methods have no response.
	const std::uint8_t send = static_cast<std::uint8_t>(ib::MadMethod::send);
	port->take(message(agent, kLidB, mad(kPing, 1, send, 3), 100));
	EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(MadAgents, UnansweredSendIsRetriedAndThenTimesOut)
{
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	add(*server_port, server(kPing, 1, kGet));
	const auto begin = loop.now();
	port->take(message(agent, kLidB, mad(kPing, 1, kGet, 7), 200, 2));
	const Message outcome = next(*port);
	EXPECT_EQ(outcome.header.status, static_cast<std::uint32_t>(ETIMEDOUT));
	EXPECT_EQ(outcome.header.length, sizeof(UserMad) + sizeof(ib::MadHeader));
	EXPECT_EQ(mad_in(outcome).header.tid & 0xffffffff, 7u);
	EXPECT_EQ(loop.now() - begin, 600ms);
	for (int i = 0; i < 3; ++i)
		EXPECT_EQ(mad_in(next(*server_port)).header.method, kGet);
	EXPECT_EQ(server_port->first(), nullptr);
}

TEST_F(MadAgents, MadResponseIsDeliveredToTheRequestingAgent)
{
	const auto port = open(node_a), other = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	add(*other, client(kPing, 1));
	const std::uint32_t answering = add(*server_port, server(kPing, 1, kGet));
	port->take(message(agent, kLidB, mad(kPing, 1, kGet, 7), 200));
	const Message request = next(*server_port);
	EXPECT_EQ(request.header.agent, answering);
	EXPECT_EQ(request.header.lid, kLidA);
	EXPECT_EQ(request.header.qpn, 1u);
	ib::Mad answer = mad_in(request);
	answer.header.method = kGetResp;
	server_port->take(message(answering, request.header.lid, answer));
	EXPECT_EQ(mad_in(next(*port)).header.method, kGetResp);
	// The requester does not wait for this response.
	server_port->take(message(answering, request.header.lid, answer));
	pass(1s);
	EXPECT_EQ(port->first(), nullptr);
	EXPECT_EQ(other->first(), nullptr);
}

TEST_F(MadAgents, ResponseFromAnotherLidIsIgnored)
{
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	const std::uint32_t answering = add(*server_port, server(kPing, 1, kGet));
	port->take(message(agent, kLidB + 1, mad(kPing, 1, kGet, 7), 500));
	const Message request = next(*server_port); // the peer does not answer
	ib::Mad answer = mad_in(request);
	answer.header.method = kGetResp;
	server_port->take(message(answering, request.header.lid, answer));
	EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(MadAgents, SendOfAnInvalidMadFailsImmediately)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	const auto begin = loop.now();
	const auto refused = [&](const Message &sent) {
		port->take(sent);
		EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(EINVAL));
	};
	const ib::Mad any = mad(kPing, 1, kGet, 7);
	refused(message(agent + 1, kLidB, any, 100));
	refused(message(kMostAgents, kLidB, any, 100));
	Message wrong = message(agent, kLidB, any, 100);
	wrong.header.pkey_index = 1; // an empty entry
	refused(wrong);
	wrong.header.pkey_index = 9999;
	refused(wrong);
	wrong = message(agent, kLidB, any, 100);
	wrong.bytes.resize(35);
	refused(wrong);
	wrong.bytes.resize(257);
	refused(wrong);
	wrong = message(agent, kLidB, any, 100);
	wrong.header.grh_present = 1;
	wrong.header.gid_index = 8;
	refused(wrong);
	refused(message(agent, kLidB, mad(kDirected, 1, kGet, 7), 100));
	port->take(message(agent, kLidB + 1, any, 100));
	refused(message(agent, kLidB + 1, any, 100)); // the same transaction again
	EXPECT_EQ(loop.now(), begin);
}

TEST_F(MadAgents, NumberOfUnreadMadsAndPendingSendsIsLimited)
{
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	add(*server_port, server(kPing, 1, kGet));
	for (std::size_t i = 0; i < kMostUnread + 100; ++i) {
		port->take(message(agent, kLidB, mad(kPing, 1, kGet, i)));
		loop.poll();
	}
	std::size_t kept = 0;
	for (; server_port->first(); ++kept)
		server_port->received_first();
	EXPECT_EQ(kept, kMostUnread);
	// The program must wait while the maximum number of sends is pending.
	for (std::size_t i = 0; i < kMostSends; ++i) {
		ASSERT_TRUE(port->may_take());
		port->take(message(agent, kLidB + 1, mad(kPing, 1, kGet, i), 100));
	}
	EXPECT_FALSE(port->may_take());
	for (std::size_t i = 0; i < kMostSends; ++i)
		next(*port);
	EXPECT_TRUE(port->may_take());
}

TEST_F(MadAgents, ManyExpiredSendsDoNotDelayOtherTasksOfTheEventLoop)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	std::size_t outcomes_at_task = kMostSends;
	for (std::size_t i = 0; i < kMostSends; ++i)
		port->take(message(agent, kLidB + 1, mad(kPing, 1, kGet, i), 100));
	// This timer runs directly after the sends' timer, and the task after all timers.
	Timer timer(loop, [&] {
		loop.post([&] {
			outcomes_at_task = 0;
			for (; port->first(); ++outcomes_at_task)
				port->received_first();
		});
	});
	timer.arm(100ms);
	EXPECT_TRUE(loop.run_until([&] { return outcomes_at_task < kMostSends; }));
	EXPECT_LT(outcomes_at_task, kMostSends / 10);
	for (std::size_t i = outcomes_at_task; i < kMostSends; ++i)
		next(*port);
}

// The index counts in the sender's own table. The receiver reports the index in its table.
TEST_F(MadAgents, PkeyIndexOfAMadRefersToTheLocalPkeyTable)
{
	set_pkeys(a, {0xffff, 0x8001});
	set_pkeys(b, {0xffff, 0x8002, 0x8001});
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	const std::uint32_t answering = add(*server_port, server(kPing, 1, kGet));
	Message sent = message(agent, kLidB, mad(kPing, 1, kGet, 7), 200);
	sent.header.pkey_index = 1;
	port->take(sent);
	const Message request = next(*server_port);
	EXPECT_EQ(request.header.pkey_index, 2);
	ib::Mad answer = mad_in(request);
	answer.header.method = kGetResp;
	Message response = message(answering, request.header.lid, answer);
	response.header.pkey_index = request.header.pkey_index;
	server_port->take(response);
	const Message got = next(*port);
	EXPECT_EQ(got.header.status, 0u);
	EXPECT_EQ(got.header.pkey_index, 1);
	// Node a is not a member of this partition, so it does not receive the MAD.
	response.header.pkey_index = 1;
	port->take(sent);
	next(*server_port);
	server_port->take(response);
	EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(MadAgents, SourcePathBitsAboveTheLmcAreIgnored)
{
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	add(*server_port, server(kPing, 1, kGet));
	Message sent = message(agent, kLidB, mad(kPing, 1, kGet, 7));
	sent.header.path_bits = 0x7a;
	port->take(sent);
	EXPECT_EQ(next(*server_port).header.lid, kLidA);
}

// The high half of the transaction ID belongs to the agent, whatever the program has put there.
TEST_F(MadAgents, AgentThatForgesTheTransactionIdOfAnotherAgentGetsTheResponseToItsOwnRequest)
{
	const auto port = open(node_a), other = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	const std::uint32_t victim = add(*other, client(kPing, 1));
	const std::uint32_t answering = add(*server_port, server(kPing, 1, kGet));
	other->take(message(victim, kLidB, mad(kPing, 1, kGet, 7), 200));
	const std::uint64_t tid = mad_in(next(*server_port)).header.tid;
	port->take(message(agent, kLidB, mad(kPing, 1, kGet, tid), 200));
	const Message request = next(*server_port);
	EXPECT_NE(mad_in(request).header.tid >> 32, tid >> 32);
	EXPECT_EQ(mad_in(request).header.tid & 0xffffffff, 7u);
	ib::Mad answer = mad_in(request);
	answer.header.method = kGetResp;
	server_port->take(message(answering, request.header.lid, answer));
	EXPECT_EQ(mad_in(next(*port)).header.method, kGetResp);
	EXPECT_EQ(next(*other).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(MadAgents, ResponseWithoutARequestIsDropped)
{
	const auto port = open(node_a), forging = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	const std::uint32_t forger = add(*forging, server(kPing, 1, kGet));
	port->take(message(agent, kLidB, mad(kPing, 1, kGet, 7), 1000));
	ib::Mad answer = mad_in(next(*forging));
	answer.header.method = kGetResp;
	// The peer knows the agent's transaction IDs, but the agent has only one request.
	answer.header.tid = answer.header.tid + 1;
	forging->take(message(forger, kLidA, answer));
	answer.header.tid = answer.header.tid - 1;
	answer.header.mgmt_class = kPerf;
	forging->take(message(forger, kLidA, answer));
	EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
	EXPECT_EQ(port->first(), nullptr);
}

TEST_F(MadAgents, DirectedRouteSmpWhoseHopPointerIsNotZeroIsNotSent)
{
	const auto port = open(node_a);
	const std::uint32_t agent = add(*port, client(kDirected, 1));
	ib::Smp smp = directed_node_info();
	smp.header.hop_cnt = 1;
	smp.initial_path[1] = 1;
	const auto sent = port_a.counters().xmit_packets.load();
	for (const std::uint8_t pointer : {1, 2, 63, 255}) {
		smp.header.hop_ptr = pointer;
		port->take(directed(agent, smp));
		EXPECT_EQ(next(*port).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
	}
	EXPECT_EQ(port_a.counters().xmit_packets, sent);
}

TEST_F(MadAgents, GrhOfAMadIsDeliveredToTheReceivingAgent)
{
	const auto port = open(node_a), server_port = open(node_b);
	const std::uint32_t agent = add(*port, client(kPing, 1));
	add(*server_port, server(kPing, 1, kGet));
	Message sent = message(agent, kLidB, mad(kPing, 1, kGet, 7));
	sent.header.grh_present = 1;
	sent.header.hop_limit = 3;
	sent.header.traffic_class = 0x42;
	sent.header.flow_label = 0x12345u;
	const ib::Gid to = b.gid();
	std::memcpy(sent.header.gid, to.raw, sizeof(to.raw));
	port->take(sent);
	const Message got = next(*server_port);
	EXPECT_EQ(got.header.grh_present, 1);
	EXPECT_EQ(got.header.hop_limit, 3);
	EXPECT_EQ(got.header.traffic_class, 0x42);
	EXPECT_EQ(got.header.flow_label, 0x12345u);
	const ib::Gid from = a.gid();
	EXPECT_EQ(std::memcmp(got.header.gid, from.raw, sizeof(from.raw)), 0);
}

} // namespace
} // namespace weft::attach
