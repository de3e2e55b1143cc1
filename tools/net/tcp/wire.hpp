// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Encodes and parses ARP (RFC 826), IPv4 (RFC 791) and TCP segments (RFC 9293 section 3.1) in
// Ethernet frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weft::tcp
{

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;
// A 48-bit hardware address, and an IPv4 address. The first octet on the wire is the most
// significant one.
using Mac = std::uint64_t;
using Ip = std::uint32_t;

constexpr Mac kBroadcast = 0xffffffffffff;
// Returns true for the address of a single interface, which is neither zero nor a group address.
constexpr bool is_unicast(Mac mac)
{
	return mac && !(mac >> 40 & 1);
}
constexpr std::size_t kEthernetHeader = 14;
constexpr std::size_t kIpHeader = 20;
constexpr std::size_t kTcpHeader = 20;
constexpr std::uint16_t kTypeIp = 0x0800;
constexpr std::uint16_t kTypeArp = 0x0806;
constexpr std::uint8_t kProtocolIcmp = 1;
constexpr std::uint8_t kProtocolTcp = 6;

struct EthernetHeader {
	Mac destination = 0, source = 0;
	std::uint16_t type = 0;
};

struct Arp {
	bool reply = false;
	Mac sender_mac = 0, target_mac = 0;
	Ip sender = 0, target = 0;
};

struct Packet {
	Ip source = 0, destination = 0;
	std::uint8_t protocol = 0;
	View payload{};
};

enum Flags : std::uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16 };

struct Segment {
	std::uint16_t source = 0, destination = 0; // ports
	std::uint32_t sequence = 0, acknowledgement = 0;
	std::uint8_t flags = 0;
	std::uint16_t window = 0;
	std::optional<std::uint16_t> mss{}; // with kSyn
	View payload{};

	// Returns the length in the sequence space.
	std::uint32_t length() const
	{
		return static_cast<std::uint32_t>(payload.size()) + (flags & kSyn ? 1 : 0) +
		       (flags & kFin ? 1 : 0);
	}
};

// These return whole frames.
Bytes encode(const EthernetHeader &ethernet, const Arp &arp);
Bytes encode(const EthernetHeader &ethernet, const Packet &packet);
// Returns the payload of a packet, with its checksum.
Bytes encode(Ip source, Ip destination, const Segment &segment);

// Parse a header. Return nothing for incomplete packets, fragments, and packets with a wrong
// checksum. Views are parts of the argument.
std::optional<EthernetHeader> parse_ethernet(View frame);
std::optional<Arp> parse_arp(View payload);
std::optional<Packet> parse_packet(View payload);
std::optional<Segment> parse_segment(const Packet &packet);

// Returns the Internet checksum (RFC 1071) of bytes that start at an even offset. It is 0 for data
// that includes a correct checksum.
std::uint16_t checksum(View bytes, std::uint32_t begin = 0);

} // namespace weft::tcp
