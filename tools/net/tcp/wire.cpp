// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/tcp/wire.hpp"

#include <bit>
#include <cstring>

namespace weft::tcp
{

namespace
{

constexpr std::uint8_t kTimeToLive = 64;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::size_t kArpBytes = 28;
constexpr std::uint8_t kOptionEnd = 0, kOptionNothing = 1, kOptionMss = 2;
constexpr std::size_t kMssOption = 4;

void put(Bytes &out, std::uint64_t value, unsigned bytes)
{
	while (bytes-- > 0)
		out.push_back(static_cast<std::uint8_t>(value >> 8 * bytes));
}

std::uint64_t get(View bytes, std::size_t offset, unsigned count)
{
	std::uint64_t value = 0;
	for (unsigned i = 0; i < count; ++i)
		value = value << 8 | bytes[offset + i];
	return value;
}

void put_at(Bytes &out, std::size_t offset, std::uint16_t value)
{
	out[offset] = static_cast<std::uint8_t>(value >> 8);
	out[offset + 1] = static_cast<std::uint8_t>(value);
}

// Returns an Ethernet header, with capacity for @more bytes after it.
Bytes begin(const EthernetHeader &ethernet, std::size_t more)
{
	Bytes frame;
	frame.reserve(kEthernetHeader + more);
	put(frame, ethernet.destination, 6);
	put(frame, ethernet.source, 6);
	put(frame, ethernet.type, 2);
	return frame;
}

// Returns the sum of the addresses, the protocol and the length, which the checksum of a segment
// also covers.
std::uint32_t pseudo_header(Ip source, Ip destination, std::size_t length)
{
	return (source >> 16) + (source & 0xffff) + (destination >> 16) + (destination & 0xffff) +
	       kProtocolTcp + static_cast<std::uint32_t>(length);
}

// Returns false if the options are malformed.
bool parse_options(View options, Segment &segment)
{
	while (!options.empty() && options[0] != kOptionEnd) {
		if (options[0] == kOptionNothing) {
			options = options.subspan(1);
			continue;
		}
		if (options.size() < 2 || options[1] < 2 || options[1] > options.size())
			return false;
		if (options[0] == kOptionMss && options[1] == kMssOption)
			segment.mss = static_cast<std::uint16_t>(get(options, 2, 2));
		options = options.subspan(options[1]);
	}
	return true;
}

} // namespace

// Adds four bytes at a time in host order, because the byte order affects only the order of the
// result's bytes (RFC 1071 section 2).
std::uint16_t checksum(View bytes, std::uint32_t begin)
{
	const auto fold = [](std::uint64_t sum) {
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		return static_cast<std::uint16_t>(sum);
	};
	std::uint64_t sum = 0;
	for (; bytes.size() >= sizeof(std::uint32_t);
	     bytes = bytes.subspan(sizeof(std::uint32_t))) {
		std::uint32_t word;
		std::memcpy(&word, bytes.data(), sizeof(word));
		sum += word;
	}
	std::uint32_t rest = 0;
	if (!bytes.empty())
		std::memcpy(&rest, bytes.data(), bytes.size());
	const std::uint16_t folded = fold(sum + rest);
	const std::uint16_t swapped =
		std::endian::native == std::endian::little
			? static_cast<std::uint16_t>(folded << 8 | folded >> 8)
			: folded;
	return static_cast<std::uint16_t>(~fold(std::uint64_t{begin} + swapped));
}

Bytes encode(const EthernetHeader &ethernet, const Arp &arp)
{
	Bytes frame = begin(ethernet, kArpBytes);
	put(frame, 1, 2); // Ethernet
	put(frame, kTypeIp, 2);
	put(frame, 6, 1);
	put(frame, 4, 1);
	put(frame, arp.reply ? 2 : 1, 2);
	put(frame, arp.sender_mac, 6);
	put(frame, arp.sender, 4);
	put(frame, arp.target_mac, 6);
	put(frame, arp.target, 4);
	return frame;
}

Bytes encode(const EthernetHeader &ethernet, const Packet &packet)
{
	Bytes frame = begin(ethernet, kIpHeader + packet.payload.size());
	put(frame, 0x45, 1);
	put(frame, 0, 1);
	put(frame, kIpHeader + packet.payload.size(), 2);
	put(frame, 0, 2); // no fragment, so no identification (RFC 6864)
	put(frame, kDontFragment, 2);
	put(frame, kTimeToLive, 1);
	put(frame, packet.protocol, 1);
	put(frame, 0, 2);
	put(frame, packet.source, 4);
	put(frame, packet.destination, 4);
	put_at(frame, kEthernetHeader + 10, checksum(View(frame).subspan(kEthernetHeader)));
	frame.insert(frame.end(), packet.payload.begin(), packet.payload.end());
	return frame;
}

Bytes encode(Ip source, Ip destination, const Segment &segment)
{
	Bytes out;
	const std::size_t header = kTcpHeader + (segment.mss ? kMssOption : 0);
	out.reserve(header + segment.payload.size());
	put(out, segment.source, 2);
	put(out, segment.destination, 2);
	put(out, segment.sequence, 4);
	put(out, segment.acknowledgement, 4);
	put(out, header / 4 << 4, 1);
	put(out, segment.flags, 1);
	put(out, segment.window, 2);
	put(out, 0, 4); // checksum, urgent pointer
	if (segment.mss) {
		put(out, kOptionMss, 1);
		put(out, kMssOption, 1);
		put(out, *segment.mss, 2);
	}
	out.insert(out.end(), segment.payload.begin(), segment.payload.end());
	put_at(out, 16, checksum(out, pseudo_header(source, destination, out.size())));
	return out;
}

std::optional<EthernetHeader> parse_ethernet(View frame)
{
	if (frame.size() < kEthernetHeader)
		return std::nullopt;
	return EthernetHeader{get(frame, 0, 6), get(frame, 6, 6),
			      static_cast<std::uint16_t>(get(frame, 12, 2))};
}

std::optional<Arp> parse_arp(View payload)
{
	if (payload.size() < kArpBytes || get(payload, 0, 6) != 0x000108000604)
		return std::nullopt;
	const auto operation = get(payload, 6, 2);
	if (operation != 1 && operation != 2)
		return std::nullopt;
	return Arp{operation == 2, get(payload, 8, 6), get(payload, 18, 6),
		   static_cast<Ip>(get(payload, 14, 4)), static_cast<Ip>(get(payload, 24, 4))};
}

std::optional<Packet> parse_packet(View payload)
{
	if (payload.size() < kIpHeader || payload[0] >> 4 != 4)
		return std::nullopt;
	const std::size_t header = std::size_t{payload[0]} % 16 * 4;
	const std::size_t length = get(payload, 2, 2);
	// A frame may be longer than its packet, because short frames are padded.
	if (header < kIpHeader || length < header || length > payload.size())
		return std::nullopt;
	const bool fragment = get(payload, 6, 2) & 0x3fff;
	if (fragment || checksum(payload.first(header)))
		return std::nullopt;
	return Packet{static_cast<Ip>(get(payload, 12, 4)), static_cast<Ip>(get(payload, 16, 4)),
		      payload[9], payload.subspan(header, length - header)};
}

std::optional<Segment> parse_segment(const Packet &packet)
{
	const View bytes = packet.payload;
	if (bytes.size() < kTcpHeader)
		return std::nullopt;
	const std::size_t header = std::size_t{bytes[12]} / 16 * 4;
	if (header < kTcpHeader || header > bytes.size() ||
	    checksum(bytes, pseudo_header(packet.source, packet.destination, bytes.size())))
		return std::nullopt;
	Segment segment;
	segment.source = static_cast<std::uint16_t>(get(bytes, 0, 2));
	segment.destination = static_cast<std::uint16_t>(get(bytes, 2, 2));
	segment.sequence = static_cast<std::uint32_t>(get(bytes, 4, 4));
	segment.acknowledgement = static_cast<std::uint32_t>(get(bytes, 8, 4));
	segment.flags = bytes[13];
	segment.window = static_cast<std::uint16_t>(get(bytes, 14, 2));
	segment.payload = bytes.subspan(header);
	if (!parse_options(bytes.subspan(kTcpHeader, header - kTcpHeader), segment))
		return std::nullopt;
	return segment;
}

} // namespace weft::tcp
