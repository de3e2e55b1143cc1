// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Checks the CRCs against the specification's example packet, and the lookup tables against a
// bitwise computation.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/wire/checksum.hpp"

namespace
{

// The packet of IBA 7.8.3 (an RDMA write of 14 bytes) without its CRCs.
constexpr std::uint8_t example[52] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00,
	0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d,
	0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d,
	0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00};

TEST(Checksum, mgmt_08_icrc_matches_the_specifications_example)
{
	// The bytes on the wire are 96 25 B7 5A; the value here begins with the least significant
	// byte.
	EXPECT_EQ(0x5ab72596u, packet::icrc_of(example, 36, sizeof(example)));
}

TEST(Checksum, mgmt_08_icrc_ignores_fields_that_switches_change)
{
	std::vector<std::uint8_t> changed(example, example + sizeof(example));
	changed[0] = 0x20;  // VL
	changed[12] = 0xc0; // FECN, BECN
	EXPECT_EQ(0x5ab72596u, packet::icrc_of(changed.data(), 36, sizeof(example)));
	changed[3] ^= 1; // DLID
	EXPECT_NE(0x5ab72596u, packet::icrc_of(changed.data(), 36, sizeof(example)));
}

TEST(Checksum, mgmt_08_icrc_of_a_global_packet_ignores_fields_that_routers_change)
{
	std::vector<std::uint8_t> packet(8 + 40 + 12 + 8 + 16, 0x35);
	packet[1] = 0x03; // LNH global
	std::uint32_t crc = packet::icrc_of(packet.data(), 68, 84);
	for (unsigned at : {0u, 2u, 3u, 6u, 7u, 8u + 7u}) {
		auto routed = packet;
		routed[at] ^= 0x5a;
		EXPECT_EQ(crc, packet::icrc_of(routed.data(), 68, 84)) << at;
	}
	for (unsigned at : {8u + 6u, 16u, 47u, 48u, 67u, 83u}) {
		auto routed = packet;
		routed[at] ^= 0x5a;
		EXPECT_NE(crc, packet::icrc_of(routed.data(), 68, 84)) << at;
	}
}

TEST(Checksum, mgmt_08_vcrc_changes_if_any_bit_of_the_packet_changes)
{
	// The VCRC covers all bytes from the LRH to the ICRC, including fields that a switch
	// changes (IBA 7.8.2).
	std::vector<std::uint8_t> packet(example, example + sizeof(example));
	for (std::uint8_t byte : {0x96, 0x25, 0xb7, 0x5a})
		packet.push_back(byte);
	const std::uint16_t crc =
		packet::vcrc_of(packet.data(), static_cast<unsigned>(packet.size()));
	for (std::size_t bit = 0; bit < 8 * packet.size(); bit++) {
		auto changed = packet;
		changed[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
		EXPECT_NE(crc,
			  packet::vcrc_of(changed.data(), static_cast<unsigned>(changed.size())))
			<< bit;
	}
	// The CRC of a packet together with its VCRC is the same constant for every packet.
	const auto remainder = [](std::vector<std::uint8_t> whole) {
		const std::uint16_t own =
			packet::vcrc_of(whole.data(), static_cast<unsigned>(whole.size()));
		whole.push_back(static_cast<std::uint8_t>(own));
		whole.push_back(static_cast<std::uint8_t>(own >> 8));
		return packet::vcrc_of(whole.data(), static_cast<unsigned>(whole.size()));
	};
	EXPECT_EQ(remainder(packet), remainder({1, 2, 3}));
	EXPECT_EQ(remainder(packet), remainder(std::vector<std::uint8_t>(100, 0x5a)));
}

TEST(Checksum, mgmt_08_crc_tables_agree_with_the_bitwise_definition)
{
	constexpr std::uint64_t seed = 16;
	std::mt19937_64 random(seed);
	for (unsigned size = 0; size < 70; size++) {
		std::vector<std::uint8_t> data(size);
		for (auto &byte : data)
			byte = static_cast<std::uint8_t>(random());
		std::uint32_t icrc = 0xffffffff;
		std::uint16_t vcrc = 0xffff;
		for (std::uint8_t byte : data)
			for (unsigned bit = 0; bit < 8; bit++) {
				unsigned in = byte >> bit & 1;
				icrc = icrc >> 1 ^ ((icrc ^ in) & 1 ? 0xedb88320u : 0);
				// 100Bh with the least significant coefficient first.
				vcrc = static_cast<std::uint16_t>(vcrc >> 1 ^
								  ((vcrc ^ in) & 1 ? 0xd008u : 0));
			}
		ib::Icrc i;
		ib::Vcrc v;
		unsigned half = size / 3;
		i.update(data.data(), half);
		i.update(data.data() + half, size - half);
		v.update(data.data(), half);
		v.update(data.data() + half, size - half);
		EXPECT_EQ(static_cast<std::uint32_t>(~icrc), i.value()) << size;
		EXPECT_EQ(static_cast<std::uint16_t>(~vcrc), v.value()) << size;
	}
}

} // namespace
