// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the server of `weft attach` over its sockets. The test sends the messages that the
// replacement of libibumad sends, and invalid messages.
#include <array>
#include <cerrno>
#include <filesystem>
#include <numeric>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/message.hpp"
#include "attach/server.hpp"
#include "attach/tests/two_nodes.hpp"

namespace weft::attach
{
namespace
{

using testing::TwoNodes;

class AttachServer : public TwoNodes
{
public:
	AttachServer()
	{
		// The server opens the nodes itself, so they must not be open here.
		node_a.reset();
		node_b.reset();
		server.add_node("a", {&a}, 1, true);
		server.add_node("b", {&b}, 1, true);
		server.add_node("limited", {&b}, 1, false);
	}

	FileDescriptor connect()
	{
		int ends[2];
		EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				       ends),
			  0);
		server.serve(FileDescriptor(ends[0]));
		return FileDescriptor(ends[1]);
	}

	static Request request(Kind kind, const std::string &node, std::uint32_t port = 1)
	{
		Request made{};
		made.version = kVersion;
		made.kind = kind;
		made.port = port;
		node.copy(made.node, sizeof(made.node) - 1);
		return made;
	}

	static void send(const FileDescriptor &to, const void *bytes, std::size_t size)
	{
		ASSERT_EQ(::send(to.get(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
	}

	// Returns the number of bytes received, or 0 at the end of the connection.
	ssize_t receive(const FileDescriptor &from, void *bytes, std::size_t size)
	{
		ssize_t got = -1;
		loop.run_until([&] {
			got = ::recv(from.get(), bytes, size, MSG_TRUNC);
			return got >= 0;
		});
		return got;
	}

	Reply ask(const FileDescriptor &by, const Request &asked)
	{
		Reply reply{};
		send(by, &asked, sizeof(asked));
		EXPECT_EQ(receive(by, &reply, sizeof(reply)), static_cast<ssize_t>(sizeof(reply)));
		return reply;
	}
	Reply ask(const Request &asked) { return ask(connect(), asked); }

	bool ends(const FileDescriptor &connection)
	{
		char byte;
		return receive(connection, &byte, sizeof(byte)) == 0;
	}

	std::uint32_t add_agent(std::uint64_t token, const AgentRequest &agent)
	{
		Request asked = request(Kind::add_agent, "");
		asked.token = token;
		asked.agent = agent;
		const Reply reply = ask(asked);
		EXPECT_EQ(reply.error, 0);
		return reply.agent;
	}

	Server server{loop, {}};
};

TEST_F(AttachServer, DescribeRequestReturnsThePortsAndGuidsOfANode)
{
	const auto by = connect();
	const Request asked = request(Kind::describe, "b");
	Description description{};
	send(by, &asked, sizeof(asked));
	ASSERT_EQ(receive(by, &description, sizeof(description)),
		  static_cast<ssize_t>(sizeof(description)));
	EXPECT_EQ(description.error, 0);
	EXPECT_EQ(description.ports, 1u);
	EXPECT_EQ(description.node_guid, 0xb0u);
	EXPECT_EQ(description.port[0].number, 1u);
	EXPECT_EQ(description.port[0].lid, kLidB);
	EXPECT_EQ(description.port[0].rate, 40u);
	EXPECT_EQ(description.port[0].pkey[0], 0xffff);
}

TEST_F(AttachServer, RequestsWithAnUnknownNodeNamePortNumberRequestTypeOrVersionAreRefused)
{
	EXPECT_EQ(ask(request(Kind::open, "nobody")).error, ENODEV);
	EXPECT_EQ(ask(request(Kind::open, "a", 2)).error, ENODEV);
	EXPECT_EQ(ask(request(Kind::open, "a", 0)).error, ENODEV);
	EXPECT_EQ(ask(request(Kind{99}, "a")).error, EPROTO);
	EXPECT_EQ(ask(request(Kind::add_agent, "a")).error, EIO); // no such token
	Request old = request(Kind::open, "a");
	old.version = 0;
	EXPECT_EQ(ask(old).error, EPROTO);
	Request endless = request(Kind::open, "a");
	std::memset(endless.node, 'a', sizeof(endless.node));
	EXPECT_EQ(ask(endless).error, ENODEV);

	const auto by = connect();
	send(by, "short", 5);
	Reply reply{};
	EXPECT_EQ(receive(by, &reply, sizeof(reply)), static_cast<ssize_t>(sizeof(reply)));
	EXPECT_EQ(reply.error, EPROTO);
	EXPECT_TRUE(ends(by));
}

TEST_F(AttachServer, MadsAndRmppMessagesAreDelivered)
{
	const auto asking = connect(), answering = connect();
	const Reply first = ask(asking, request(Kind::open, "a"));
	const Reply second = ask(answering, request(Kind::open, "b"));
	ASSERT_EQ(first.error, 0);
	ASSERT_EQ(second.error, 0);
	const std::uint32_t agent = add_agent(first.token, client(0x03, 2, 1));
	const std::uint32_t serving = add_agent(second.token, TwoNodes::server(0x03, 2, 0x12, 1));

	const Message sent = message(agent, kLidB, mad(0x03, 2, 0x12, 5), 60000);
	ASSERT_EQ(send_message(asking.get(), sent.header, sent.bytes.data(), sent.bytes.size()), 0);
	Message got;
	const auto arrives = [&](const FileDescriptor &at) {
		return loop.run_until([&] { return receive_message(at.get(), got) == 0; });
	};
	ASSERT_TRUE(arrives(answering));
	EXPECT_EQ(got.header.agent, serving);

	ib::Mad head = mad_in(got);
	head.header.method = 0x92;
	rmpp_of(head).version = ib::RmppHeader::current_version;
	rmpp_of(head).type = ib::RmppHeader::data;
	rmpp_of(head).time_flags = ib::RmppHeader::active;
	Message answer = message(serving, kLidA, head);
	answer.bytes.resize(5 * kMostInline);
	for (std::size_t at = header_bytes(0x03); at < answer.bytes.size(); ++at)
		answer.bytes[at] = static_cast<std::byte>(at * 11);
	answer.header.length = static_cast<std::uint32_t>(sizeof(UserMad) + answer.bytes.size());
	ASSERT_EQ(send_message(answering.get(), answer.header, answer.bytes.data(),
			       answer.bytes.size()),
		  0);
	ASSERT_TRUE(arrives(asking));
	ASSERT_EQ(got.bytes.size(), answer.bytes.size());
	EXPECT_TRUE(std::equal(got.bytes.begin() + header_bytes(0x03), got.bytes.end(),
			       answer.bytes.begin() + header_bytes(0x03)));
}

TEST_F(AttachServer, ExitOfAProgramWithTheMaximumNumberOfPendingSendsUnregistersItsAgents)
{
	auto exiting = connect();
	const auto other = connect();
	const Reply first = ask(exiting, request(Kind::open, "a"));
	const std::uint32_t agent = add_agent(first.token, TwoNodes::server(0x03, 2, 0x12));
	Request same = request(Kind::add_agent, "");
	same.token = ask(other, request(Kind::open, "a")).token;
	same.agent = TwoNodes::server(0x03, 2, 0x12);
	EXPECT_EQ(ask(same).error, EINVAL);

	// No port has this LID, and the timeout of an hour exceeds that of the test.
	for (std::size_t i = 0; i < kMostSends; ++i) {
		const Message sent =
			message(agent, kLidB + 1, mad(0x03, 2, 0x01, i), 60 * 60 * 1000);
		ASSERT_EQ(send_message(exiting.get(), sent.header, sent.bytes.data(),
				       sent.bytes.size()),
			  0);
		loop.poll();
	}
	exiting.reset();
	loop.poll();
	EXPECT_EQ(ask(same).error, 0);
}

// Fixture for RMPP transfers that stop because one of the programs exits. The link is so slow that
// the transfer takes long.
class ExitDuringRmpp : public AttachServer
{
protected:
	static constexpr std::size_t kBytes = 300000;
	static constexpr std::uint32_t kOutcomeTimeout = 500; // ms

	ExitDuringRmpp()
	{
		fabric::Faults faults;
		faults.delay = std::chrono::milliseconds(1);
		link.set_faults(faults);
	}

	struct Program {
		FileDescriptor connection;
		std::uint32_t agent;
	};
	Program start(const std::string &node, const AgentRequest &agent)
	{
		FileDescriptor connection = connect();
		const Reply reply = ask(connection, request(Kind::open, node));
		EXPECT_EQ(reply.error, 0);
		return {std::move(connection), add_agent(reply.token, agent)};
	}
	Program start_asking() { return start("a", client(0x03, 2, 1)); }
	Program start_answering() { return start("b", TwoNodes::server(0x03, 2, 0x12, 1)); }

	static void put(const Program &program, const Message &message)
	{
		ASSERT_EQ(send_message(program.connection.get(), message.header,
				       message.bytes.data(), message.bytes.size()),
			  0);
	}
	Message get(const Program &program)
	{
		Message got;
		EXPECT_TRUE(loop.run_until(
			[&] { return receive_message(program.connection.get(), got) == 0; },
			std::chrono::minutes(10)));
		return got;
	}

	// Sends a request, and a response of several segments that expects only ACKs.
	void exchange(const Program &asking, const Program &answering)
	{
		put(asking, message(asking.agent, kLidB, mad(0x03, 2, 0x12, 5), 60000));
		ib::Mad head = mad_in(get(answering));
		head.header.method = 0x92;
		rmpp_of(head).version = ib::RmppHeader::current_version;
		rmpp_of(head).type = ib::RmppHeader::data;
		rmpp_of(head).time_flags = ib::RmppHeader::active;
		Message answer = message(answering.agent, kLidA, head, kOutcomeTimeout);
		answer.bytes.resize(kBytes);
		answer.header.length = static_cast<std::uint32_t>(sizeof(UserMad) + kBytes);
		put(answering, answer);
	}
	void wait_for_the_middle()
	{
		const auto sent = [&] { return port_b.counters().xmit_packets.load(); };
		const auto before = sent();
		ASSERT_TRUE(loop.run_until([&] { return sent() > before + 100; }));
		ASSERT_LT(sent() - before, kBytes / sizeof(ib::Mad));
	}
};

TEST_F(ExitDuringRmpp, RequestTimesOutIfTheResponderExits)
{
	const Program asking = start_asking();
	Program answering = start_answering();
	exchange(asking, answering);
	wait_for_the_middle();
	answering.connection.reset();
	const Message outcome = get(asking);
	EXPECT_EQ(outcome.header.status, static_cast<std::uint32_t>(ETIMEDOUT));
	EXPECT_EQ(outcome.bytes.size(), sizeof(ib::MadHeader));
	// Another program can serve the same requests, and the same request works.
	const Program next = start_answering();
	exchange(asking, next);
	const Message got = get(asking);
	EXPECT_EQ(got.header.status, 0u);
	EXPECT_EQ(got.bytes.size(), kBytes);
}

TEST_F(ExitDuringRmpp, SenderReportsATimeoutIfTheReceiverExits)
{
	Program asking = start_asking();
	const Program answering = start_answering();
	exchange(asking, answering);
	wait_for_the_middle();
	asking.connection.reset();
	const Message outcome = get(answering);
	EXPECT_EQ(outcome.header.status, static_cast<std::uint32_t>(ETIMEDOUT));
	EXPECT_EQ(outcome.bytes.size(), sizeof(ib::MadHeader));
	// The sender can serve the next program.
	const Program other = start_asking();
	exchange(other, answering);
	EXPECT_EQ(get(other).bytes.size(), kBytes);
}

TEST_F(AttachServer, UnsealedMemfdClosesTheConnection)
{
	for (const int seals : {0, F_SEAL_SHRINK | F_SEAL_GROW}) {
		const auto by = connect();
		ASSERT_EQ(ask(by, request(Kind::open, "a")).error, 0);
		const FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
		ASSERT_EQ(::ftruncate(file.get(), 100000), 0);
		ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
		UserMad header{};
		header.length = 100000;
		iovec part{&header, sizeof(header)};
		union {
			cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(int))];
		} control{};
		msghdr sent{};
		sent.msg_iov = &part;
		sent.msg_iovlen = 1;
		sent.msg_control = control.bytes;
		sent.msg_controllen = sizeof(control.bytes);
		cmsghdr *const rights = CMSG_FIRSTHDR(&sent);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		const int number = file.get();
		std::memcpy(CMSG_DATA(rights), &number, sizeof(number));
		ASSERT_GE(::sendmsg(by.get(), &sent, MSG_NOSIGNAL), 0);
		EXPECT_TRUE(ends(by));
	}
}

TEST_F(AttachServer, MessageOfInvalidSizeClosesTheConnection)
{
	const std::vector<std::byte> bytes(100000);
	for (const std::size_t size : {std::size_t{1}, sizeof(UserMad) - 1, bytes.size()}) {
		const auto by = connect();
		ASSERT_EQ(ask(by, request(Kind::open, "a")).error, 0);
		send(by, bytes.data(), size);
		EXPECT_TRUE(ends(by));
	}
}

TEST_F(AttachServer, RemovingANodeClosesItsConnections)
{
	const auto on_a = connect(), on_b = connect();
	ASSERT_EQ(ask(on_a, request(Kind::open, "a")).error, 0);
	ASSERT_EQ(ask(on_b, request(Kind::open, "b")).error, 0);
	server.remove_node("a");
	EXPECT_TRUE(ends(on_a));
	EXPECT_EQ(ask(request(Kind::open, "a")).error, ENODEV);
	add_agent(ask(connect(), request(Kind::open, "b")).token, client(0x04, 1));
}

TEST_F(AttachServer, SecondSubnetManagerOnAPortIsRefused)
{
	const auto is_sm = [&] {
		return (a.port_info().capability_mask & ib::port_cap_is_sm) != 0;
	};
	EXPECT_EQ(ask(request(Kind::become_sm, "limited")).error, EPERM);
	auto first = connect();
	const auto second = connect();
	ASSERT_EQ(ask(first, request(Kind::become_sm, "a")).error, 0);
	EXPECT_TRUE(is_sm());
	EXPECT_EQ(ask(request(Kind::become_sm, "a")).error, EAGAIN);
	Request waiting = request(Kind::become_sm, "a");
	waiting.reserved = 1;
	send(second, &waiting, sizeof(waiting));
	while (loop.poll())
		;
	first.reset();
	Reply reply{};
	EXPECT_EQ(receive(second, &reply, sizeof(reply)), static_cast<ssize_t>(sizeof(reply)));
	EXPECT_EQ(reply.error, 0);
	EXPECT_TRUE(is_sm());
	EXPECT_EQ(ask(request(Kind::become_sm, "b")).error, 0);
}

TEST_F(AttachServer, RemovingANodeDisconnectsSubnetManagersThatWaitForItsPort)
{
	Request waiting = request(Kind::become_sm, "a");
	waiting.reserved = 1;
	const auto first = connect(), second = connect(), third = connect();
	ASSERT_EQ(ask(first, request(Kind::become_sm, "a")).error, 0);
	for (const auto *each : {&second, &third})
		send(*each, &waiting, sizeof(waiting));
	while (loop.poll())
		;
	server.remove_node("a");
	for (const auto *each : {&first, &second, &third})
		EXPECT_TRUE(ends(*each));
	EXPECT_EQ(a.port_info().capability_mask & ib::port_cap_is_sm, 0u);
}

TEST_F(AttachServer, StoppingTheServerDisconnectsSubnetManagersThatWaitForAPort)
{
	auto other = std::make_unique<Server>(loop, std::filesystem::path());
	other->add_node("a", {&a}, 1, true);
	const auto to_other = [&] {
		int ends[2];
		EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				       ends),
			  0);
		other->serve(FileDescriptor(ends[0]));
		return FileDescriptor(ends[1]);
	};
	Request waiting = request(Kind::become_sm, "a");
	waiting.reserved = 1;
	const auto first = to_other(), second = to_other();
	ASSERT_EQ(ask(first, waiting).error, 0);
	send(second, &waiting, sizeof(waiting));
	while (loop.poll())
		;
	other.reset();
	EXPECT_TRUE(ends(first));
	EXPECT_TRUE(ends(second));
}

TEST_F(AttachServer, ConnectionsAboveTheLimitAreRefused)
{
	std::vector<FileDescriptor> connections;
	for (std::size_t i = 0; i < kMostConnections; ++i)
		connections.push_back(connect());
	EXPECT_TRUE(ends(connect()));
	connections.pop_back();
	while (loop.poll())
		;
	EXPECT_EQ(ask(request(Kind::open, "a")).error, 0);
}

} // namespace
} // namespace weft::attach
