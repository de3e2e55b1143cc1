// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "iwarp/crc32c.hpp"

#include <array>

namespace weft::iwarp
{

namespace
{

constexpr std::uint32_t kPolynomial = 0x82f63b78; // Castagnoli's, the lowest power uppermost

constexpr std::array<std::uint32_t, 256> kTable = [] {
	std::array<std::uint32_t, 256> table{};
	for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
		std::uint32_t rest = byte;
		for (int bit = 0; bit < 8; ++bit)
			rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
		table[byte] = rest;
	}
	return table;
}();

} // namespace

std::uint32_t crc32c(View bytes, std::uint32_t crc)
{
	crc = ~crc;
	for (const std::uint8_t byte : bytes)
		crc = crc >> 8 ^ kTable[(crc ^ byte) & 0xff];
	return ~crc;
}

} // namespace weft::iwarp
