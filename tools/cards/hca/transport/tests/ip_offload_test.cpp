// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests checksums and the segmentation of large sends.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "cards/hca/transport/ip_offload.hpp"

namespace weft::hca::transport
{

namespace
{

using Bytes = std::vector<std::byte>;

void put(Bytes &bytes, std::size_t at, unsigned size, std::uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		bytes[at + i] = static_cast<std::byte>(value >> 8 * (size - 1 - i));
}
std::uint64_t get(const Bytes &bytes, std::size_t at, unsigned size)
{
	std::uint64_t value = 0;
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | std::to_integer<unsigned>(bytes[at + i]);
	return value;
}

/* A simple implementation for comparison. */
std::uint16_t slow_sum(std::span<const std::byte> bytes, std::uint32_t start)
{
	std::uint64_t sum = start;
	for (std::size_t i = 0; i < bytes.size(); i += 2) {
		unsigned high = std::to_integer<unsigned>(bytes[i]);
		unsigned low = i + 1 < bytes.size() ? std::to_integer<unsigned>(bytes[i + 1]) : 0;
		sum += high << 8 | low;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<std::uint16_t>(sum);
}

constexpr std::size_t kIpAt = 4;
constexpr std::size_t kL4At = kIpAt + 20;

/* Returns an encapsulated IPv4 TCP packet with @data bytes. */
Bytes tcp_packet(std::size_t data)
{
	Bytes bytes(kL4At + 20 + data);
	put(bytes, 0, 2, 0x0800);
	put(bytes, kIpAt, 1, 0x45);
	put(bytes, kIpAt + 2, 2, 40 + data);
	put(bytes, kIpAt + 4, 2, 0x1234);
	put(bytes, kIpAt + 8, 1, 64);
	put(bytes, kIpAt + 9, 1, 6);
	put(bytes, kIpAt + 12, 4, 0x0a000001);
	put(bytes, kIpAt + 16, 4, 0x0a000002);
	put(bytes, kL4At + 4, 4, 0xfffffff0);
	put(bytes, kL4At + 12, 1, 0x50);
	put(bytes, kL4At + 13, 1, 0x99); /* CWR ACK PSH FIN */
	for (std::size_t i = 0; i < data; i++)
		bytes[kL4At + 20 + i] = static_cast<std::byte>(i * 7);
	return bytes;
}

} // namespace

/* The fast sum equals the slow one for every length and alignment. */
TEST(OnesComplement, FastSumEqualsTheSimpleSumForEveryLengthAndAlignment)
{
	std::mt19937 random(5);
	Bytes bytes(600);
	for (auto &byte : bytes)
		byte = static_cast<std::byte>(random());
	for (std::size_t from = 0; from < 5; from++)
		for (std::size_t size = 0; size + from < bytes.size(); size += 1 + size / 7) {
			auto part = std::span(bytes).subspan(from, size);
			OnesComplement sum;
			sum.add(part);
			/* 0 and ffff represent the same number. */
			auto fast = sum.folded(), slow = slow_sum(part, 0);
			EXPECT_TRUE(fast == slow || (fast % 0xffff == 0 && slow % 0xffff == 0))
				<< from << ' ' << size;
		}
}

/*
 * Computed checksums are correct according to both the simple implementation and the receive side.
 */
TEST(Checksums, ChecksumsWrittenByFillChecksumsAreValid)
{
	for (std::size_t data : {0u, 1u, 2u, 77u, 1400u}) {
		Bytes bytes = tcp_packet(data);
		put(bytes, kL4At + 16, 2, 0xbeef); /* the driver leaves a partial sum */
		EXPECT_FALSE(check_checksums(bytes).l4_checksum_ok()) << "not yet";
		fill_checksums(bytes, true, true);
		EXPECT_EQ(slow_sum(std::span(bytes).subspan(kIpAt, 20), 0), 0xffff);
		std::uint32_t pseudo = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 +
				       static_cast<std::uint32_t>(20 + data);
		EXPECT_EQ(slow_sum(std::span(bytes).subspan(kL4At), pseudo), 0xffff);
		EXPECT_EQ(check_checksums(bytes),
			  (ChecksumStatus{.ipv4 = true, .ip_checksum_ok = true, .tcp = true}));
	}
}

/*
 * A packet with one wrong bit anywhere after the encapsulation header is not reported as correct.
 */
TEST(Checksums, WrongChecksumsAreNotReportedAsValid)
{
	Bytes good = tcp_packet(32);
	fill_checksums(good, true, true);
	for (std::size_t bit = 8 * kL4At; bit < 8 * good.size(); bit++) {
		Bytes bad = good;
		bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
		EXPECT_FALSE(check_checksums(bad).l4_checksum_ok()) << bit;
	}
}

/* Fragments, other protocols and truncated packets are neither changed nor reported as correct. */
TEST(Checksums, FragmentsAndTruncatedPacketsAreNotChecksummed)
{
	Bytes fragment = tcp_packet(100);
	put(fragment, kIpAt + 6, 2, 0x2000);
	Bytes before = fragment;
	fill_checksums(fragment, false, true);
	EXPECT_EQ(fragment, before);

	Bytes stump = tcp_packet(100);
	stump.resize(kL4At + 10);
	before = stump;
	fill_checksums(stump, true, true);
	EXPECT_EQ(stump, before);
	EXPECT_EQ(check_checksums(stump), ChecksumStatus{});

	Bytes udp = tcp_packet(100);
	put(udp, kIpAt + 9, 1, 17);
	fill_checksums(udp, true, false);
	put(udp, kL4At + 6, 2, 0);
	EXPECT_FALSE(check_checksums(udp).l4_checksum_ok()) << "UDP without a checksum";

	std::mt19937 random(9);
	for (int i = 0; i < 100000; i++) {
		Bytes noise(random() % 120);
		for (auto &byte : noise)
			byte = static_cast<std::byte>(random());
		if (noise.size() > 5) {
			put(noise, 0, 2, random() % 2 ? 0x0800 : 0x86dd);
			put(noise, 4, 1, random() % 2 ? 0x45 : 0x60);
		}
		fill_checksums(noise, true, true);
		check_checksums(noise);
	}
}

/* A large send is split into valid segments that together contain the data. */
TEST(LargeSend, SegmentsHaveConsecutiveSequenceNumbers)
{
	constexpr std::size_t total = 5000, mss = 1400;
	Bytes whole = tcp_packet(total);
	auto header = std::span(whole).first(kL4At + 20);
	auto data = std::span(whole).subspan(kL4At + 20);
	LargeSend large(header, total, mss, true, true);
	Bytes joined;
	unsigned count = 0;
	while (!large.done()) {
		std::size_t bytes = large.data_bytes();
		Bytes segment(large.size());
		std::ranges::copy(data.subspan(large.offset(), bytes),
				  segment.begin() + static_cast<long>(large.header_bytes()));
		large.finish(segment);
		EXPECT_LE(bytes, mss);
		EXPECT_EQ(get(segment, kIpAt + 2, 2), 40 + bytes);
		EXPECT_EQ(get(segment, kIpAt + 4, 2), 0x1234 + count);
		EXPECT_EQ(get(segment, kL4At + 4, 4),
			  static_cast<std::uint32_t>(0xfffffff0 + joined.size()));
		bool last = joined.size() + bytes == total;
		EXPECT_EQ(get(segment, kL4At + 13, 1),
			  0x10u | (count == 0 ? 0x80u : 0) | (last ? 0x09u : 0));
		EXPECT_TRUE(check_checksums(segment).l4_checksum_ok());
		joined.insert(joined.end(), segment.begin() + static_cast<long>(header.size()),
			      segment.end());
		count++;
	}
	EXPECT_EQ(count, 4u);
	EXPECT_TRUE(std::equal(joined.begin(), joined.end(), data.begin(), data.end()));
}

} // namespace weft::hca::transport
