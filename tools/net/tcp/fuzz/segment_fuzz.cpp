// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends arbitrary segments with valid checksums to an open connection, a listener, and the
// neighbour table. The data received must never exceed the data sent, tables must stay within their
// limits, and the stack must shut down.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "net/tcp/stack.hpp"

namespace
{

using namespace weft;
using namespace weft::tcp;

constexpr Mac kOwnMac = 0x020000000001, kPeerMac = 0x020000000002;
constexpr Ip kOwn = 0x0a000001, kPeer = 0x0a000002;
constexpr std::uint16_t kPort = 80;

struct Listener final : User {
	void connected() override {}
	void received(View bytes) override
	{
		taken += bytes.size();
		if (taken > said)
			std::abort();
		if (taken % 7 == 0 && connection)
			connection->write(bytes);
	}
	void writable() override {}
	void peer_closed() override
	{
		if (connection)
			connection->close();
	}
	void ended(End) override { connection.reset(); }
	ConnectionPtr connection;
	std::size_t taken = 0, said = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	VirtualEnvironment environment;
	Loop loop("fuzz", Loop::Mode::manual, environment);
	Listener user;
	std::uint32_t own = 0;
	Stack stack(loop, {.mac = kOwnMac}, [&](Bytes frame) {
		const auto packet = parse_packet(View(frame).subspan(kEthernetHeader));
		if (const auto segment = packet ? parse_segment(*packet) : std::nullopt)
			own = segment->sequence + segment->length();
	});
	stack.add_address(kOwn, 0xffffff00);
	stack.receive(
		encode({kBroadcast, kPeerMac, kTypeArp}, Arp{false, kPeerMac, 0, kPeer, kOwn}));
	stack.listen({0, kPort}, [&](const ConnectionPtr &connection) {
		connection->set_user(&user);
		user.connection = connection;
	});
	View input(data, size);
	std::uint32_t sequence = 1000;
	// Each step consists of flags, the offset from the expected sequence number, the length of
	// the payload in the following input, the acknowledged number, and the window.
	constexpr std::size_t step = 6;
	while (input.size() >= step) {
		Segment segment;
		segment.source = static_cast<std::uint16_t>(2000 + (input[0] >> 6));
		segment.destination = kPort;
		segment.flags = input[0] & 0x1f;
		segment.sequence = sequence + static_cast<std::uint32_t>(
						      static_cast<std::int8_t>(input[1]) * 16);
		segment.acknowledgement =
			own + static_cast<std::uint32_t>(static_cast<std::int8_t>(input[2]));
		segment.window = static_cast<std::uint16_t>(input[3] << 8 | input[4]);
		const std::size_t length = std::min<std::size_t>(input[5], input.size() - step);
		segment.payload = input.subspan(step, length);
		input = input.subspan(step + length);
		user.said += length;
		const Bytes bytes = encode(kPeer, kOwn, segment);
		stack.receive(encode({kOwnMac, kPeerMac, kTypeIp},
				     Packet{kPeer, kOwn, kProtocolTcp, bytes}));
		if (static_cast<std::int8_t>(segment.sequence - sequence) == 0)
			sequence += segment.length();
		loop.poll();
		if (stack.connections() > 8)
			std::abort();
	}
	return 0;
}
