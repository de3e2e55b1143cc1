// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that packets and hardware addresses have the layout of RFC 4391.
#include <kern/kunit.hpp>
#include <kern/time.hpp>
#include "../wire.hpp"

using namespace ipoib;

namespace
{

const u8 *bytes_of(const HardwareAddress &address)
{
	return reinterpret_cast<const u8 *>(&address);
}

constexpr ib::Gid port_gid{
	{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x02, 0xc9, 0x03, 0x00, 0x4e, 0x8a, 0x11}};

/*
 * The encapsulation header has the protocol number in network byte order and two reserved bytes
 * (RFC 4391 section 6).
 */
void encapsulation_header_matches_rfc_4391(kern::kunit::Test &test)
{
	Header header{};
	header.type = type_ipv6;
	header.reserved = 0;
	const auto *raw = reinterpret_cast<const u8 *>(&header);
	EXPECT_EQ(sizeof(header), 4u);
	EXPECT_EQ(raw[0], u8{0x86});
	EXPECT_EQ(raw[1], u8{0xdd});
	EXPECT_EQ(raw[2], u8{0});
	EXPECT_EQ(raw[3], u8{0});
}

/* The four protocols that the RFC lists are carried, and no others. */
void only_ipv4_ipv6_arp_and_rarp_packets_are_carried(kern::kunit::Test &test)
{
	unsigned carried = 0;
	for (u32 type = 0; type <= 0xffff; type++)
		carried += carries(static_cast<u16>(type));
	EXPECT_EQ(carried, 4u);
	for (const u16 type : {0x0800, 0x0806, 0x8035, 0x86dd})
		EXPECT_TRUE(carries(type));
}

/*
 * A hardware address is a byte of flags, the QP's number from its highest byte on, and the GID (RFC
 * 4391 section 9.1.1).
 */
void hardware_address_matches_rfc_4391(kern::kunit::Test &test)
{
	const auto address = HardwareAddress::make(0x123456, port_gid);
	const u8 *raw = bytes_of(address);
	EXPECT_EQ(sizeof(address), 20u);
	EXPECT_EQ(raw[0], u8{0});
	EXPECT_EQ(raw[1], u8{0x12});
	EXPECT_EQ(raw[2], u8{0x34});
	EXPECT_EQ(raw[3], u8{0x56});
	EXPECT_EQ(__builtin_memcmp(raw + 4, port_gid.raw, 16), 0);
	EXPECT_FALSE(address.is_multicast());
}

/* Every QP number is read back unchanged; bits above its 24 bits are ignored. */
void qp_number_is_read_back_unchanged_from_the_hardware_address(kern::kunit::Test &test)
{
	kern::SeededRandom random(test.seed());
	for (unsigned i = 0; i < 1000; i++) {
		const u32 number = random.below(1u << 24);
		ASSERT_EQ(HardwareAddress::make(number, port_gid).qpn(), number);
		ASSERT_EQ(HardwareAddress::make(number | 0xab000000, port_gid).qpn(), number);
	}
	EXPECT_EQ(HardwareAddress::make(0xffffff, port_gid).qpn(), 0xffffffu);
}

/*
 * A peer is identified by its QP number and its GID; the flags, which have its other capabilities,
 * do not count.
 */
void addresses_that_differ_only_in_flags_belong_to_the_same_peer(kern::kunit::Test &test)
{
	const auto address = HardwareAddress::make(0x48, port_gid);
	auto other = address;
	other.flags = 0x80;
	EXPECT_TRUE(address.same_peer(other));
	EXPECT_FALSE(address.same_peer(HardwareAddress::make(0x49, port_gid)));
	for (unsigned i = 0; i < 16; i++) {
		other = address;
		other.gid.raw[i] ^= 1;
		EXPECT_FALSE(address.same_peer(other));
	}
}

/*
 * The broadcast address of a partition: all QPs, and ff12:401b:PKEY::ffff:ffff with the
 * full-membership bit (RFC 4391 section 4).
 */
void broadcast_address_contains_the_full_member_pkey(kern::kunit::Test &test)
{
	constexpr u8 expected[] = {0, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0x81, 0x23,
				   0, 0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
	const auto address = broadcast_address(0x8123);
	EXPECT_EQ(__builtin_memcmp(bytes_of(address), expected, sizeof(expected)), 0);
	EXPECT_TRUE(address.is_multicast());
	EXPECT_EQ(address.qpn(), 0xffffffu);
}

/*
 * A group belongs to the broadcast domain if its QP number, scope and partition match, whatever its
 * signature and group ID.
 */
void multicast_addresses_of_an_interface_have_the_qpn_scope_and_pkey_of_its_broadcast_address(
	kern::kunit::Test &test)
{
	const auto broadcast = broadcast_address(0x8001);
	EXPECT_TRUE(is_group_of(broadcast, broadcast));

	auto group = broadcast;
	group.gid.raw[2] = 0x60; /* the signature of IPv6 */
	group.gid.raw[13] = 0x02;
	EXPECT_TRUE(is_group_of(group, broadcast));

	EXPECT_FALSE(is_group_of(broadcast_address(0x8002), broadcast));
	EXPECT_FALSE(is_group_of(broadcast_address(0x9001), broadcast));
	EXPECT_FALSE(is_group_of(HardwareAddress::make(0x48, port_gid), broadcast));
	auto wrong = broadcast;
	wrong.qpn_bytes[0] = 0;
	EXPECT_FALSE(is_group_of(wrong, broadcast));
	wrong = broadcast;
	wrong.gid.raw[1] = 0x15; /* another scope */
	EXPECT_FALSE(is_group_of(wrong, broadcast));
}

/* The IP MTU is the datagram's MTU minus the encapsulation header (RFC 4391 section 7). */
void mgmt_11_ip_mtu_leaves_room_for_the_encapsulation_header(kern::kunit::Test &test)
{
	EXPECT_EQ(ip_mtu(256), 252u);
	EXPECT_EQ(ip_mtu(1024), 1020u);
	EXPECT_EQ(ip_mtu(2048), 2044u);
	EXPECT_EQ(ip_mtu(4096), 4092u);
	EXPECT_EQ(hard_header_bytes, 24u);
}

/*
 * The packet's own header determines where a checksum may be missing: in a TCP or UDP header that
 * follows an IP header of its full length, in an unfragmented packet, as far as the packet contains
 * it. No other place is accepted.
 */
void ipoib_07_position_of_a_checksum_is_found_only_in_unfragmented_tcp_and_udp_packets(
	kern::kunit::Test &test)
{
	u8 packet[128]{};
	const auto place = [&](u16 type, size_t size = sizeof(packet)) {
		const ChecksumPlace found = checksum_place(type, packet, size);
		return found ? found.start * 100u + found.offset : 0u;
	};
	packet[0] = 0x45;
	packet[9] = 6;
	EXPECT_EQ(place(type_ipv4), 2016u);
	EXPECT_EQ(place(type_ipv4, 38), 2016u);
	EXPECT_EQ(place(type_ipv4, 37), 0u);
	EXPECT_EQ(place(type_ipv4, 0), 0u);
	for (const u16 type : {type_ipv6, type_arp, type_rarp})
		EXPECT_EQ(place(type), 0u);
	packet[0] = 0x4f;
	EXPECT_EQ(place(type_ipv4), 6016u);
	packet[9] = 17;
	EXPECT_EQ(place(type_ipv4), 6006u);
	/*
	 * A header length below the minimum gives no place. The DF flag is permitted, and fragments
	 * give no place.
	 */
	packet[0] = 0x44;
	EXPECT_EQ(place(type_ipv4), 0u);
	packet[0] = 0x45;
	packet[6] = 0x40;
	EXPECT_EQ(place(type_ipv4), 2006u);
	packet[6] = 0x20;
	EXPECT_EQ(place(type_ipv4), 0u);
	packet[6] = 0;
	packet[7] = 1;
	EXPECT_EQ(place(type_ipv4), 0u);
	packet[7] = 0;
	/* SCTP and tunnel protocols have no place for a checksum. */
	for (const u8 protocol : {0, 1, 4, 41, 47, 132}) {
		packet[9] = protocol;
		EXPECT_EQ(place(type_ipv4), 0u);
	}

	packet[0] = 0x60;
	packet[6] = 6;
	EXPECT_EQ(place(type_ipv6), 4016u);
	EXPECT_EQ(place(type_ipv6, 57), 0u);
	packet[6] = 17;
	EXPECT_EQ(place(type_ipv6), 4006u);
	EXPECT_EQ(place(type_ipv4), 0u);
	/* IPv6 extension headers, fragments and other protocols have no place for a checksum. */
	for (const u8 next : {0, 43, 44, 58, 60}) {
		packet[6] = next;
		EXPECT_EQ(place(type_ipv6), 0u);
	}
}

} // namespace

KUNIT_SUITE(
	ipoib_wire, KUNIT_CASE(encapsulation_header_matches_rfc_4391),
	KUNIT_CASE(only_ipv4_ipv6_arp_and_rarp_packets_are_carried),
	KUNIT_CASE(hardware_address_matches_rfc_4391),
	KUNIT_CASE(qp_number_is_read_back_unchanged_from_the_hardware_address),
	KUNIT_CASE(addresses_that_differ_only_in_flags_belong_to_the_same_peer),
	KUNIT_CASE(broadcast_address_contains_the_full_member_pkey),
	KUNIT_CASE(
		multicast_addresses_of_an_interface_have_the_qpn_scope_and_pkey_of_its_broadcast_address),
	KUNIT_CASE(mgmt_11_ip_mtu_leaves_room_for_the_encapsulation_header),
	KUNIT_CASE(
		ipoib_07_position_of_a_checksum_is_found_only_in_unfragmented_tcp_and_udp_packets));
