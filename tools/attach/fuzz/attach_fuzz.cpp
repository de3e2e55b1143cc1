// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes the server of `weft attach`: sends it arbitrary messages as attached programs, and sends
// arbitrary MADs from the fabric to the node to which these programs are attached. Afterwards a new
// program must still get a response to its request.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include "attach/protocol.hpp"
#include "attach/server.hpp"
#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_port.hpp"

namespace
{

using namespace weft;
using Bytes = std::span<const std::uint8_t>;

// An input consists of these steps. Each is followed by the number of its bytes, and by the bytes.
enum class Step : std::uint8_t { connect, send, agent, incoming, wait, close, count };

struct Fixture {
	Fixture()
	{
		spdlog::set_level(spdlog::level::off);
		fabric.connect(port_a, port_b);
		server.add_node("a", {&a}, 1, true);
	}

	int connect()
	{
		int ends[2];
		if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
			std::abort();
		server.serve(FileDescriptor(ends[0]));
		return ends[1];
	}

	// Opens the node's port on a connection. Returns its token, or 0 on failure.
	std::uint64_t open(int connection)
	{
		attach::Request request{};
		request.version = attach::kVersion;
		request.kind = attach::Kind::open;
		request.node[0] = 'a';
		request.port = 1;
		return ask(connection, request).token;
	}

	attach::Reply ask(int connection, const attach::Request &request)
	{
		attach::Reply reply{};
		if (::send(connection, &request, sizeof(request), MSG_NOSIGNAL) < 0)
			return reply;
		loop.run_until([&] { return ::recv(connection, &reply, sizeof(reply), 0) >= 0; });
		return reply;
	}

	void drain(int connection)
	{
		std::array<char, 512> bytes;
		while (::recv(connection, bytes.data(), bytes.size(), 0) > 0)
			;
	}

	VirtualEnvironment environment;
	Reactor reactor{"fuzz", Reactor::Drive::manual, environment};
	Loop loop{"fuzz", reactor};
	fabric::Fabric fabric{1, &reactor};
	fabric::Port &port_a = fabric.add_port("a/1");
	fabric::Port &port_b = fabric.add_port("b/1");
	fabric::MadPort a{
		port_a, {.description = "a", .node_guid = 0xa0, .environment = &environment}, {}};
	fabric::MadPort b{
		port_b, {.description = "b", .node_guid = 0xb0, .environment = &environment}, {}};
	attach::Server server{loop, {}};
};

// Checks that a program can still query the NodeInfo of the node.
void expect_alive(Fixture &fixture)
{
	const FileDescriptor opened(fixture.connect()), other(fixture.connect());
	attach::Request request{};
	request.version = attach::kVersion;
	request.kind = attach::Kind::add_agent;
	request.token = fixture.open(opened.get());
	request.agent.mgmt_class = 0x81;
	request.agent.mgmt_class_version = 1;
	const attach::Reply reply = fixture.ask(other.get(), request);
	if (request.token == 0 || reply.error)
		std::abort();
	struct {
		attach::UserMad header;
		ib::Smp smp;
	} message{};
	message.header.agent = reply.agent;
	message.header.timeout_ms = 1000;
	message.header.length = sizeof(message);
	message.smp.header.base_version = ib::mad_base_version;
	message.smp.header.class_version = 1;
	message.smp.header.mgmt_class = 0x81;
	message.smp.header.method = static_cast<std::uint8_t>(ib::MadMethod::get);
	message.smp.header.attr_id = std::uint16_t{ib::attr_node_info};
	message.smp.dr_slid = ib::lid_permissive;
	message.smp.dr_dlid = ib::lid_permissive;
	if (::send(opened.get(), &message, sizeof(message), MSG_NOSIGNAL) < 0)
		std::abort();
	decltype(message) answer{};
	const bool came = fixture.loop.run_until(
		[&] { return ::recv(opened.get(), &answer, sizeof(answer), 0) > 0; });
	if (!came || answer.header.status != 0 ||
	    !answer.smp.header.is_method(ib::MadMethod::get_resp))
		std::abort();
}

void run(Fixture &fixture, Bytes input)
{
	constexpr std::size_t most = 8;
	std::vector<std::pair<FileDescriptor, std::uint64_t>> connections;
	while (input.size() >= 4) {
		const auto step = static_cast<Step>(input[0] % static_cast<unsigned>(Step::count));
		const std::size_t which = input[1];
		const std::size_t size =
			std::min<std::size_t>(input[2] | (input[3] & 3) << 8, input.size() - 4);
		const Bytes bytes = input.subspan(4, size);
		const bool opens = (input[3] & 0x80) != 0;
		input = input.subspan(4 + size);
		if (step == Step::connect && connections.size() < most) {
			connections.emplace_back(fixture.connect(), 0);
			if (opens)
				connections.back().second =
					fixture.open(connections.back().first.get());
			continue;
		}
		if (connections.empty())
			continue;
		auto &[socket, token] = connections[which % connections.size()];
		switch (step) {
		case Step::send:
			static_cast<void>(
				::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
			break;
		case Step::agent: {
			attach::Request request{};
			request.version = attach::kVersion;
			request.kind = (which & 0x80) != 0 ? attach::Kind::remove_agent
							   : attach::Kind::add_agent;
			request.token = token;
			std::memcpy(&request.agent, bytes.data(),
				    std::min(bytes.size(), sizeof(request.agent)));
			const FileDescriptor by(fixture.connect());
			fixture.ask(by.get(), request);
			break;
		}
		case Step::incoming: {
			ib::Mad mad{};
			std::memcpy(&mad, bytes.data(), std::min(bytes.size(), sizeof(mad)));
			fabric::MadAddress address;
			address.slid = 9;
			address.dlid = 5;
			address.src_qp = address.dest_qp = mad.header.is_smp() ? 0 : 1;
			address.qkey = address.src_qp ? ib::qkey_gsi : 0;
			address.vl = address.src_qp ? 0 : ib::vl_management;
			fabric::Packet packet = fabric::make_mad_packet(address, mad);
			static_cast<void>(fixture.port_b.send(packet));
			break;
		}
		case Step::wait:
			fixture.drain(socket.get());
			for (unsigned turns = 0; turns < 1 + which / 16; ++turns)
				fixture.reactor.turn(fixture.loop.now() +
						     std::chrono::seconds(which));
			break;
		default:
			connections.erase(connections.begin() +
					  static_cast<std::ptrdiff_t>(which % connections.size()));
			break;
		}
		while (fixture.loop.poll())
			;
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Fixture fixture;
	run(fixture, {data, size});
	while (fixture.loop.poll())
		;
	expect_alive(fixture);
	return 0;
}
