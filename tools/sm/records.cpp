// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/records.hpp"

#include <algorithm>

namespace weft::sm
{

namespace
{

bool bits_equal(const std::uint8_t *a, const std::uint8_t *b, unsigned bit, unsigned bits)
{
	if (bit % 8 == 0 && bits % 8 == 0)
		return std::memcmp(a + bit / 8, b + bit / 8, bits / 8) == 0;
	for (unsigned at = bit; at < bit + bits; at++)
		if (((a[at / 8] ^ b[at / 8]) >> (7 - at % 8) & 1) != 0)
			return false;
	return true;
}

} // namespace

bool fields_match(std::span<const Field> fields, std::uint64_t mask, const void *wanted,
		  const void *candidate)
{
	const auto *a = static_cast<const std::uint8_t *>(wanted);
	const auto *b = static_cast<const std::uint8_t *>(candidate);
	return std::all_of(fields.begin(), fields.end(), [&](const Field &field) {
		return (mask & ib::component(field.component)) == 0 ||
		       bits_equal(a, b, field.bit, field.bits);
	});
}

} // namespace weft::sm
