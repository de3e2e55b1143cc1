// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and writes big-endian integers in byte arrays. All values in BAR 4 of the card are
// big-endian.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::amso1100
{

// Returns the big-endian integer of type T at @offset, which must be in @bytes.
template<std::unsigned_integral T>
T load_be(std::span<const std::byte> bytes, std::size_t offset = 0)
{
	std::uint64_t value = 0;
	for (const std::byte byte : bytes.subspan(offset, sizeof(T)))
		value = value << 8 | static_cast<std::uint8_t>(byte);
	return static_cast<T>(value);
}

template<std::unsigned_integral T>
void store_be(std::span<std::byte> bytes, std::size_t offset, T value)
{
	for (std::size_t i = sizeof(T); i-- > 0;
	     value = static_cast<T>(sizeof(T) > 1 ? value >> 8 : 0))
		bytes[offset + i] = static_cast<std::byte>(value & 0xff);
}

} // namespace weft::amso1100
