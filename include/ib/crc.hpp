// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Computes the two checksums of a packet (IBA 7.8): the invariant CRC (CRC-32 of Ethernet over the
 * packet with the fields that switches and routers may change replaced by ones) and the variant CRC
 * (16 bits, polynomial 100Bh, over everything from the LRH to the ICRC). core/wire selects the
 * bytes that they cover; this file has the arithmetic, eight bytes at a time.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib
{

namespace detail
{
/* table[k][b]: the effect of byte b followed by k zero bytes, for a reflected polynomial. */
template<class Word, Word polynomial>
struct CrcTable {
	Word table[8][256];

	constexpr CrcTable() : table{}
	{
		for (unsigned byte = 0; byte < 256; byte++) {
			Word crc = static_cast<Word>(byte);
			for (unsigned bit = 0; bit < 8; bit++)
				crc = static_cast<Word>(crc >> 1 ^ (crc & 1 ? polynomial : 0));
			table[0][byte] = crc;
		}
		for (unsigned k = 1; k < 8; k++)
			for (unsigned byte = 0; byte < 256; byte++) {
				Word before = table[k - 1][byte];
				table[k][byte] =
					static_cast<Word>(table[0][before & 0xff] ^ before >> 8);
			}
	}
};

template<class Word, Word polynomial>
inline constexpr CrcTable<Word, polynomial> crc_table{};

/* A running, reflected CRC; without the initial and final inversion. */
template<class Word, Word polynomial>
constexpr Word crc_update(Word crc, const std::uint8_t *data, std::size_t size)
{
	constexpr auto &t = crc_table<Word, polynomial>.table;
	while (size >= 8) {
		std::uint64_t word = 0;
		for (unsigned i = 0; i < 8; i++)
			word |= std::uint64_t{data[i]} << (8 * i);
		word ^= crc;
		Word next = 0;
		for (unsigned i = 0; i < 8; i++)
			next ^= t[7 - i][word >> (8 * i) & 0xff];
		crc = next;
		data += 8;
		size -= 8;
	}
	while (size-- > 0)
		crc = static_cast<Word>(t[0][(crc ^ *data++) & 0xff] ^ crc >> 8);
	return crc;
}
} // namespace detail

/* Invariant CRC over pieces: start from the default, feed bytes, then take value(). */
class Icrc
{
public:
	constexpr void update(const std::uint8_t *data, std::size_t size)
	{
		crc_ = detail::crc_update<std::uint32_t, 0xedb88320>(crc_, data, size);
	}
	/* The 32 bits as a number whose least significant byte goes on the wire first. */
	constexpr std::uint32_t value() const { return ~crc_; }

private:
	std::uint32_t crc_ = 0xffffffff;
};

/* Variant CRC over pieces. */
class Vcrc
{
public:
	constexpr void update(const std::uint8_t *data, std::size_t size)
	{
		crc_ = detail::crc_update<std::uint16_t, 0xd008>(crc_, data, size);
	}
	/* The 16 bits as a number whose least significant byte goes on the wire first. */
	constexpr std::uint16_t value() const { return static_cast<std::uint16_t>(~crc_); }

private:
	std::uint16_t crc_ = 0xffff;
};

} // namespace ib
