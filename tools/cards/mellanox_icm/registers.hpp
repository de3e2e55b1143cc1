// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Splits accesses to registers into accesses to single registers, which are big-endian dwords. A
// read of a part of a register is permitted. A write to a part of a register is ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hw/mlx4/field.hpp>

namespace weft::mellanox_icm
{

// @read(offset) returns the dword at that offset.
template<typename Read>
void read_dwords(std::uint64_t offset, std::span<std::byte> data, Read &&read)
{
	const std::uint64_t end = offset + data.size();
	for (std::uint64_t place = offset & ~std::uint64_t{3}; place < end; place += 4) {
		std::uint8_t bytes[4];
		hw::mlx4::store_be32(bytes, 0, read(place));
		for (unsigned i = 0; i < 4; ++i)
			if (place + i >= offset && place + i < end)
				data[place + i - offset] = std::byte{bytes[i]};
	}
}

// Calls @write(offset, value) for each complete aligned dword.
template<typename Write>
void write_dwords(std::uint64_t offset, std::span<const std::byte> data, Write &&write)
{
	const std::size_t lead = (4 - offset % 4) % 4;
	for (std::size_t at = lead; at + 4 <= data.size(); at += 4)
		write(offset + at,
		      hw::mlx4::load_be32(reinterpret_cast<const std::uint8_t *>(data.data()), at));
}

} // namespace weft::mellanox_icm
