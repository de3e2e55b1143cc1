/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines the layouts of packets and hardware addresses (RFC 4391). */
#pragma once

#include <ib/packet.hpp>
#include <ib/sa.hpp>

namespace ipoib
{

constexpr unsigned address_bytes = 20;
constexpr unsigned grh_bytes = 40;

/* The encapsulation header in front of every IP, ARP or RARP packet (RFC 4391 section 6). */
struct Header {
	ib::be16 type;     /* an Ethernet protocol number */
	ib::be16 reserved; /* 0 or `unsummed` */

	/*
	 * The packet has no valid checksum (ChecksumPlace). Permitted only on a connection whose
	 * peers have agreed to it.
	 */
	static constexpr std::uint16_t unsummed = 1;
};
static_assert(sizeof(Header) == 4);

/* The protocols that the header may specify. */
enum EtherType : std::uint16_t {
	type_ipv4 = 0x0800,
	type_arp = 0x0806,
	type_rarp = 0x8035,
	type_ipv6 = 0x86dd,
};

constexpr bool carries(std::uint16_t type)
{
	return type == type_ipv4 || type == type_ipv6 || type == type_arp || type == type_rarp;
}

/* A hardware address (RFC 4391 section 9.1.1): flags, the QP number, the port's GID. */
struct HardwareAddress {
	std::uint8_t flags;
	std::uint8_t qpn_bytes[3];
	ib::Gid gid;

	constexpr std::uint32_t qpn() const
	{
		return std::uint32_t{qpn_bytes[0]} << 16 | std::uint32_t{qpn_bytes[1]} << 8 |
		       qpn_bytes[2];
	}
	constexpr bool is_multicast() const { return gid.is_multicast(); }
	/* The interface also accepts reliable connections (RFC 4755 section 5.1). */
	static constexpr std::uint8_t flag_rc = 0x80;
	constexpr bool takes_connections() const { return flags & flag_rc; }
	/* Compares without the flags, which are capabilities of the peer and do not identify it. */
	constexpr bool same_peer(const HardwareAddress &other) const
	{
		return qpn() == other.qpn() && gid == other.gid;
	}
	static constexpr HardwareAddress make(std::uint32_t qpn, const ib::Gid &gid)
	{
		return {0,
			{static_cast<std::uint8_t>(qpn >> 16), static_cast<std::uint8_t>(qpn >> 8),
			 static_cast<std::uint8_t>(qpn)},
			gid};
	}
};
static_assert(sizeof(HardwareAddress) == address_bytes && alignof(HardwareAddress) == 1);

/*
 * The stack's link-layer header in front of a packet: the destination, then the encapsulation
 * header.
 */
constexpr unsigned hard_header_bytes = address_bytes + sizeof(Header);

/* Returns the number of bytes of IP in a datagram of this MTU. */
constexpr unsigned ip_mtu(unsigned datagram_bytes)
{
	return datagram_bytes - static_cast<unsigned>(sizeof(Header));
}

/*
 * Connected mode (RFC 4755): the largest IP packet on a connection, and the largest message, which
 * includes the encapsulation header.
 */
constexpr unsigned connected_mtu = 65520;
constexpr unsigned connected_bytes = connected_mtu + static_cast<unsigned>(sizeof(Header));

/*
 * Returns the service ID on which an interface accepts connections (section 3.4), from the QP
 * number in its hardware address. The first byte is the same as in Linux.
 */
constexpr std::uint64_t connection_service(std::uint32_t qpn)
{
	return std::uint64_t{0x10} << 56 | qpn;
}

/*
 * Private data of REQ and REP (section 3.5): the QP number of the sender's interface, and the
 * largest message that the sender receives.
 */
struct ConnectionData {
	ib::be32 qpn; /* QP number in the hardware address */
	ib::be32 receive_bytes;
	/*
	 * An extension of weft. RFC 4755's private data ends before this field, where other
	 * implementations have zeros. In a REQ, the value leaves_checksums offers to omit the
	 * checksums of TCP and UDP, because a reliable connection has its own. In a REP, it accepts
	 * the offer.
	 */
	ib::be32 extension{};
	static constexpr std::uint32_t leaves_checksums = 0x77667402;
	static constexpr unsigned least_bytes = 8;
};
static_assert(sizeof(ConnectionData) == 12);

/*
 * The position of a TCP or UDP checksum, which a packet may omit: the offset of the transport
 * header in the IP packet, and the offset of the checksum field in that header.
 */
struct ChecksumPlace {
	std::uint8_t start = 0, offset = 0;

	constexpr unsigned end() const { return start + offset + 2u; }
	/* Returns true if the packet has such a checksum. */
	explicit constexpr operator bool() const { return start != 0; }
};

/*
 * Finds the checksum of TCP or UDP directly behind the header of a complete IP packet. Both peers
 * calculate the position. If the receiver used a position from the packet, a malicious peer could
 * have two bytes anywhere in the packet overwritten after all filters have passed it. size: the
 * number of bytes of the packet that can be read.
 */
constexpr ChecksumPlace checksum_place(std::uint16_t type, const std::uint8_t *packet,
				       std::size_t size)
{
	constexpr unsigned least_v4 = 20, bytes_v6 = 40, tcp = 6, udp = 17;
	unsigned start = 0, protocol = 0;
	if (type == type_ipv4 && size >= least_v4 && packet[0] >> 4 == 4) {
		/* The packet is a fragment. */
		const bool fragment = (packet[6] & 0x3f) || packet[7];
		start = (packet[0] & 0xfu) * 4;
		protocol = fragment || start < least_v4 ? 0u : packet[9];
	} else if (type == type_ipv6 && size >= bytes_v6 && packet[0] >> 4 == 6) {
		start = bytes_v6;
		protocol = packet[6];
	}
	if (protocol != tcp && protocol != udp)
		return {};
	const ChecksumPlace place{static_cast<std::uint8_t>(start),
				  static_cast<std::uint8_t>(protocol == tcp ? 16 : 6)};
	return place.end() <= size ? place : ChecksumPlace{};
}

/* Returns the broadcast address of a partition (RFC 4391 section 4). */
constexpr HardwareAddress broadcast_address(ib::Pkey pkey)
{
	return HardwareAddress::make(ib::qpn_multicast, ib::ipoib_broadcast_gid(pkey));
}

/*
 * Returns true if an address of the stack is that of a group in this broadcast domain: it has the
 * same scope and P_Key as the broadcast group. The signature may be that of IPv4 or of IPv6.
 */
constexpr bool is_group_of(const HardwareAddress &address, const HardwareAddress &broadcast)
{
	const auto *a = address.gid.raw, *b = broadcast.gid.raw;
	return address.qpn() == ib::qpn_multicast && a[0] == 0xff && a[1] == b[1] && a[4] == b[4] &&
	       a[5] == b[5];
}

/*
 * Returns true for the group of 224.0.0.1 or ff02::1, which every host joins (RFC 4391 section 4).
 */
constexpr bool is_all_hosts(const HardwareAddress &address)
{
	const auto *raw = address.gid.raw;
	for (unsigned i = 6; i < 15; i++)
		if (raw[i])
			return false;
	return raw[15] == 1 && (raw[2] == 0x40 || raw[2] == 0x60) && raw[3] == 0x1b;
}

} // namespace ipoib
