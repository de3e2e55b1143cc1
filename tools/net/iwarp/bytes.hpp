// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and writes big-endian integers in byte arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::iwarp
{

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;

// Returns the integer of @size bytes, which is at most 8, at @at. The range must be in @bytes.
inline std::uint64_t number_at(View bytes, std::size_t at, std::size_t size)
{
	std::uint64_t value = 0;
	for (std::size_t i = 0; i < size; ++i)
		value = value << 8 | bytes[at + i];
	return value;
}
inline void put_number(Bytes &bytes, std::uint64_t value, std::size_t size)
{
	for (std::size_t i = size; i-- > 0;)
		bytes.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

} // namespace weft::iwarp
