// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/frame.hpp"

#include <algorithm>
#include <cstring>

#include "net/fabric/switch.hpp"

namespace weft::trunk
{

namespace
{

template<class T>
bool all_zero(const T &bytes)
{
	return std::ranges::all_of(bytes, [](auto byte) { return byte == 0; });
}

// Reads the body as a structure, whose size must match exactly.
template<class Body>
std::optional<Body> read_body(std::span<const std::byte> bytes)
{
	if (bytes.size() != sizeof(Body))
		return std::nullopt;
	Body body;
	std::memcpy(&body, bytes.data(), sizeof(body));
	return body;
}

// Returns a frame with space for a body of this size.
Buffer begin_frame(FrameType type, std::size_t body_bytes)
{
	Buffer frame(sizeof(FrameHeader) + body_bytes);
	const FrameHeader header{static_cast<std::uint32_t>(body_bytes), type, {}};
	std::memcpy(frame.data(), &header, sizeof(header));
	return frame;
}

} // namespace

std::string_view text_of(Reason reason)
{
	switch (reason) {
	case Reason::none:
		return "the connection was lost";
	case Reason::version:
		return "the two daemons speak different versions of the trunk protocol";
	case Reason::role:
		return "both ends listen, or both connect";
	case Reason::name:
		return "the two ends have different trunk names";
	case Reason::key:
		return "the two ends have different keys";
	case Reason::protocol:
		return "the protocol was violated";
	case Reason::silence:
		return "nothing was received for too long";
	case Reason::replaced:
		return "a new connection replaced this one";
	case Reason::removed:
		return "the trunk was removed or its daemon exited";
	case Reason::in_use:
		return "another daemon is connected";
	case Reason::stalled:
		return "nothing was read for too long";
	case Reason::kind:
		return "one end connects a link of the fabric, the other one an Ethernet segment";
	case Reason::record:
		return "a record was forged, altered, repeated, left out or out of order";
	}
	return "unknown reason";
}

Buffer make_frame(FrameType type, std::span<const std::byte> body)
{
	Buffer frame = begin_frame(type, body.size());
	std::ranges::copy(body, frame.begin() + sizeof(FrameHeader));
	return frame;
}

std::optional<Buffer> make_packet_frame(const fabric::Packet &packet)
{
	const auto headers = std::as_bytes(packet.headers());
	const PacketBody body{static_cast<std::uint16_t>(packet.packets()),
			      packet.hops(),
			      packet.icrc_error(),
			      static_cast<std::uint8_t>(headers.size()),
			      {}};
	const std::size_t payload_bytes = packet.payload().size();
	Buffer frame =
		begin_frame(FrameType::packet, sizeof(body) + headers.size() + payload_bytes);
	std::byte *at = frame.data() + sizeof(FrameHeader);
	std::memcpy(at, &body, sizeof(body));
	std::memcpy(at + sizeof(body), headers.data(), headers.size());
	at += sizeof(body) + headers.size();
	if (packet.payload().copy_to({at, payload_bytes}) != payload_bytes)
		return std::nullopt;
	return frame;
}

std::optional<Frame> read_frame(std::span<const std::byte> bytes)
{
	FrameHeader header;
	if (bytes.size() < sizeof(header))
		return std::nullopt;
	std::memcpy(&header, bytes.data(), sizeof(header));
	const auto body = bytes.subspan(sizeof(header));
	if (header.type < FrameType::hello || header.type > kLastFrameType ||
	    !all_zero(header.zero) || header.body_bytes != body.size() || body.size() > kMostBody)
		return std::nullopt;
	return Frame{header.type, body};
}

std::optional<fabric::Packet> read_packet(std::span<const std::byte> bytes)
{
	PacketBody body;
	if (bytes.size() < sizeof(body))
		return std::nullopt;
	std::memcpy(&body, bytes.data(), sizeof(body));
	bytes = bytes.subspan(sizeof(body));
	if (body.header_bytes > bytes.size() || body.packets > kWindow || body.icrc_error > 1 ||
	    body.hops > fabric::Switch::kHopsMax || !all_zero(body.zero) ||
	    bytes.size() - body.header_bytes > kMostRunBytes)
		return std::nullopt;
	return fabric::Packet::from_headers(
		bytes.first(body.header_bytes),
		fabric::Payload::copy_of(bytes.subspan(body.header_bytes)), body.packets,
		body.icrc_error != 0, body.hops);
}

std::optional<CreditsBody> read_credits(std::span<const std::byte> bytes)
{
	const auto body = read_body<CreditsBody>(bytes);
	if (!body || body->vl >= fabric::Port::kVls || body->zero != 0 || body->packets == 0)
		return std::nullopt;
	return body;
}

std::optional<LinkBody> read_link(std::span<const std::byte> bytes)
{
	const auto body = read_body<LinkBody>(bytes);
	if (!body || body->ready > 1 || !all_zero(body->zero) ||
	    ib::mtu_bytes(static_cast<ib::Mtu>(body->mtu)) == 0)
		return std::nullopt;
	return body;
}

std::optional<Reason> read_bye(std::span<const std::byte> bytes)
{
	const auto body = read_body<ByeBody>(bytes);
	if (!body || body->reason > kLastReason || !all_zero(body->zero))
		return std::nullopt;
	return body->reason;
}

std::optional<std::span<const std::uint8_t>> read_ethernet(std::span<const std::byte> bytes)
{
	if (bytes.size() < ethernet::kLeastFrame || bytes.size() > ethernet::kMostFrame)
		return std::nullopt;
	return std::span(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size());
}

} // namespace weft::trunk
