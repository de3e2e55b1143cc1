// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines bit fields of the cards' big-endian structures.
 *
 * A structure is described by a table of fields. Each field is defined by the byte offset of its
 * 32-bit big-endian dword and by its highest and lowest bit in that dword (bit 31 is the most
 * significant bit of the first byte). The driver and the device model use the same table. The
 * accessors work with any alignment, and compile to the same code as explicit shifts.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace hw::mellanox_icm
{

/* Returns the dword at @offset bytes from @base. */
constexpr uint32_t load_be32(const uint8_t *base, size_t offset)
{
	return uint32_t{base[offset]} << 24 | uint32_t{base[offset + 1]} << 16 |
	       uint32_t{base[offset + 2]} << 8 | uint32_t{base[offset + 3]};
}

constexpr void store_be32(uint8_t *base, size_t offset, uint32_t value)
{
	base[offset] = static_cast<uint8_t>(value >> 24);
	base[offset + 1] = static_cast<uint8_t>(value >> 16);
	base[offset + 2] = static_cast<uint8_t>(value >> 8);
	base[offset + 3] = static_cast<uint8_t>(value);
}

constexpr uint64_t load_be64(const uint8_t *base, size_t offset)
{
	return uint64_t{load_be32(base, offset)} << 32 | load_be32(base, offset + 4);
}

constexpr void store_be64(uint8_t *base, size_t offset, uint64_t value)
{
	store_be32(base, offset, static_cast<uint32_t>(value >> 32));
	store_be32(base, offset + 4, static_cast<uint32_t>(value));
}

/* Bits [high:low] of the dword at byte offset @offset. */
struct Field {
	uint16_t offset;
	uint8_t high;
	uint8_t low;

	/* Returns the field's largest value. */
	constexpr uint32_t max() const
	{
		return high - low == 31 ? ~uint32_t{0} : (uint32_t{1} << (high - low + 1)) - 1;
	}
	constexpr uint32_t mask() const { return max() << low; }

	/* Returns the field's value in a dword that was already loaded. */
	constexpr uint32_t of(uint32_t dword) const { return dword >> low & max(); }

	/* Returns @value, truncated to the field's width, at the field's position in a dword. */
	constexpr uint32_t in(uint32_t value) const { return (value & max()) << low; }

	constexpr uint32_t get(const uint8_t *base) const { return of(load_be32(base, offset)); }
	constexpr void set(uint8_t *base, uint32_t value) const
	{
		store_be32(base, offset, (load_be32(base, offset) & ~mask()) | in(value));
	}
};

/*
 * A 64-bit value in two dwords, whose bits outside [high:low] belong to other fields. The value is
 * not shifted, so an address remains an address.
 */
struct Field64 {
	uint16_t offset;
	uint8_t high;
	uint8_t low;

	constexpr uint64_t mask() const
	{
		return (high == 63 ? ~uint64_t{0} : (uint64_t{1} << (high + 1)) - 1) &
		       ~((uint64_t{1} << low) - 1);
	}
	constexpr uint64_t get(const uint8_t *base) const
	{
		return load_be64(base, offset) & mask();
	}
	constexpr void set(uint8_t *base, uint64_t value) const
	{
		store_be64(base, offset, (load_be64(base, offset) & ~mask()) | (value & mask()));
	}
};

/* A structure's size in bytes, and its storage. */
template<size_t Size>
struct Storage {
	static constexpr size_t size = Size;
	uint8_t bytes[Size];
};

} // namespace hw::mellanox_icm
