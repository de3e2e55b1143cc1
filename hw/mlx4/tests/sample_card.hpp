// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides query results of a plausible card, which tests use and modify
// (Documentation/connectx.rst, "Reference images").
#pragma once
#include <hw/mlx4/commands.hpp>

namespace mlx4::test
{

struct SampleCard {
	u8 capabilities[0x100] = {};

	SampleCard()
	{
		const struct {
			u16 offset;
			u32 words[4];
		} rows[] = {
			{0x10, {0x0e0e0612, 0x60100000, 0x00160710, 0x00130207}},
			{0x20, {0x4040041c, 0x00000000, 0x00040004, 0x00000014}},
			{0x30, {0x00000000, 0x000f5301, 0x1e000000, 0xff800000}},
			{0x40, {0x08000000, 0x00340347, 0x1003000c, 0x00000000}},
			{0x50, {0x003e03f0, 0x00200200, 0x00000000, 0x00000000}},
			{0x60, {0x0008000d, 0x40170000, 0x00000000, 0x00000000}},
			{0x80, {0x00200100, 0x00400040, 0x00400040, 0x00400040}},
			{0x90, {0x00080040, 0x00000000, 0x00000200, 0x00000000}},
			{0xa0, {0x00000100, 0x00000000, 0x00000000, 0x00000000}},
		};
		for (const auto &row : rows)
			for (unsigned int i = 0; i < 4; i++)
				hw::mlx4::store_be32(capabilities, row.offset + 4 * i,
						     row.words[i]);
	}
	void set(hw::mlx4::Field field, u32 value) { field.set(capabilities, value); }
};

} // namespace mlx4::test
