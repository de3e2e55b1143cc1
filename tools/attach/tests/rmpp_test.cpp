// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests RMPP messages between two programs that `weft attach` has connected to nodes of the fabric.
// As Linux does for umad, the server of `weft attach` splits messages into segments and reassembles
// them, for MAD agents that were registered with an RMPP version.
#include <cerrno>
#include <numeric>

#include "attach/tests/two_nodes.hpp"

namespace weft::attach
{
namespace
{

using testing::TwoNodes;
using namespace std::chrono_literals;

constexpr std::uint8_t kSa = 0x03, kGetTable = 0x12, kGetTableResp = 0x92;

class Rmpp : public TwoNodes
{
public:
	Rmpp()
	{
		agent = add(*asking, client(kSa, 2, 1));
		serving = add(*answering, server(kSa, 2, kGetTable, 1));
	}

	// Sends a request, which is answered with @size bytes after the headers.
	Message ask(std::size_t size, std::uint32_t tid, std::uint32_t retries = 5)
	{
		asking->take(message(agent, kLidB, mad(kSa, 2, kGetTable, tid), 30000));
		const Message request = next(*answering);
		ib::Mad head = mad_in(request);
		head.header.method = kGetTableResp;
		rmpp_of(head).version = ib::RmppHeader::current_version;
		rmpp_of(head).type = ib::RmppHeader::data;
		rmpp_of(head).time_flags = ib::RmppHeader::active;
		Message answer = message(serving, request.header.lid, head, 0, retries);
		answer.bytes.resize(header_bytes(kSa) + size);
		for (std::size_t at = 0; at < size; ++at)
			answer.bytes[header_bytes(kSa) + at] =
				static_cast<std::byte>(at * 7 + at / 251);
		answering->take(answer);
		return answer;
	}

	void expect_whole(const Message &sent)
	{
		const Message got = next(*asking);
		EXPECT_EQ(got.header.status, 0u);
		EXPECT_EQ(got.header.length, sizeof(UserMad) + sent.bytes.size());
		ASSERT_EQ(got.bytes.size(), sent.bytes.size());
		EXPECT_TRUE(std::equal(got.bytes.begin() + header_bytes(kSa), got.bytes.end(),
				       sent.bytes.begin() + header_bytes(kSa)));
		EXPECT_EQ(asking->first(), nullptr);
	}

	const std::unique_ptr<OpenedPort> asking = open(node_a), answering = open(node_b);
	std::uint32_t agent = 0, serving = 0;
};

TEST_F(Rmpp, MessagesOfAnyLengthAreReassembled)
{
	std::uint32_t tid = 1;
	for (const std::size_t size : {0u, 1u, 199u, 200u, 201u, 400u, 13000u, 300000u})
		expect_whole(ask(size, tid++));
}

TEST_F(Rmpp, LostSegmentsAreRetransmitted)
{
	fabric::Faults faults;
	faults.loss = 0.05;
	const Message sent = ask(100000, 1, 50);
	link.set_faults(faults);
	expect_whole(ask(100000, 2, 50));
	static_cast<void>(sent);
}

TEST_F(Rmpp, UnacknowledgedRmppMessageTimesOut)
{
	Message answer = ask(100000, 1, 1);
	port_a.disable();
	answer.header.timeout_ms = 100;
	answering->take(answer);
	EXPECT_EQ(next(*answering).header.status, static_cast<std::uint32_t>(EINVAL));
	pass(1min);
	// The response is not treated as a duplicate any more, but as a new message, which is never
	// acknowledged.
	answering->take(answer);
	EXPECT_EQ(next(*answering).header.status, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(Rmpp, UnsolicitedSegmentsAreDropped)
{
	ib::Mad segment = mad(kSa, 2, kGetTableResp, 0x777);
	ib::RmppHeader &rmpp = rmpp_of(segment);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = ib::RmppHeader::data;
	rmpp.time_flags = ib::RmppHeader::active | ib::RmppHeader::first | ib::RmppHeader::last;
	rmpp.segment = 1u;
	rmpp.length_or_window = 220u;
	answering->take(message(serving, kLidA, segment));
	pass(1s);
	EXPECT_EQ(asking->first(), nullptr);
}

TEST_F(Rmpp, NumberOfIncompleteMessagesIsLimited)
{
	// An agent that implements RMPP itself sends first segments with different transaction IDs.
	AgentRequest raw = server(kSa, 2, 0x01, 1);
	raw.flags = kUserRmpp;
	const std::uint32_t flooding = add(*asking, raw);
	ib::Mad segment = mad(kSa, 2, kGetTable, 0);
	ib::RmppHeader &rmpp = rmpp_of(segment);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = ib::RmppHeader::data;
	rmpp.time_flags = ib::RmppHeader::active | ib::RmppHeader::first;
	rmpp.segment = 1u;
	for (std::uint32_t tid = 0; tid < 10 * kMostReceptions; ++tid) {
		segment.header.tid = std::uint64_t{tid};
		asking->take(message(flooding, kLidB, segment));
		loop.poll();
	}
	// A request of several MADs.
	ib::Mad head = mad(kSa, 2, kGetTable, 9999);
	rmpp_of(head).time_flags = ib::RmppHeader::active;
	Message request = message(agent, kLidB, head);
	request.bytes.resize(1000);
	asking->take(request);
	pass(5s);
	EXPECT_EQ(answering->first(), nullptr);
	// After the silence there is space for another message.
	pass(kReceptionSilence);
	asking->take(request);
	EXPECT_EQ(next(*answering).bytes.size(), request.bytes.size());
}

} // namespace
} // namespace weft::attach
