// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides query results of a plausible card with two ports, which tests use and modify.
#pragma once
#include <hw/mthca/commands.hpp>

namespace mthca::test
{

struct SampleCard {
	u8 limits[0x100] = {};

	SampleCard()
	{
		const struct {
			u16 offset;
			u32 words[4];
		} rows[] = {
			{0x10, {0x0e0e0418, 0x40100000, 0x00110418, 0x11180006}},
			{0x20, {0x40280418, 0x00000000, 0x00040004, 0x00000014}},
			{0x30, {0x00000000, 0x000f4342, 0x00000005, 0x000f0006}},
			{0x40, {0x00000000, 0x00340347, 0x1003000c, 0x00000000}},
			{0x50, {0x003b03f0, 0x003b03f0, 0x00000000, 0x00000000}},
			{0x60, {0x0006000d, 0x10180000, 0x00000000, 0x00000000}},
			{0x80, {0x01000100, 0x00200020, 0x00400040, 0x00200020}},
			{0x90, {0x00080040, 0x00000000, 0x00000000, 0x00000000}},
			{0xa0, {0x00000100, 0x00000000, 0x00000000, 0x00000000}},
		};
		for (const auto &row : rows)
			for (unsigned int i = 0; i < 4; i++)
				hw::mthca::store_be32(limits, row.offset + 4 * i, row.words[i]);
	}
	void set(hw::mthca::Field field, u32 value) { field.set(limits, value); }
};

struct SampleFirmware {
	u8 answer[0x100] = {};
	/* The bus address of BAR 0. */
	static constexpr u64 bar0 = 0x1234500000, bar0_bytes = 1 << 20;

	SampleFirmware()
	{
		using Fw = hw::mthca::QueryFw;
		Fw::fw_pages.set(answer, 16);
		Fw::version_major.set(answer, 5);
		Fw::version_minor.set(answer, 3);
		Fw::log_max_commands.set(answer, 4);
		Fw::clear_interrupt.set(answer, bar0 + 0xf00d8);
		Fw::error_buffer.set(answer, bar0 + 0x1f000);
		Fw::error_buffer_size.set(answer, 16);
		Fw::eq_arm.set(answer, bar0 + 0x1e000);
		Fw::eq_ci_table.set(answer, bar0 + 0x1d000);
	}
};

} // namespace mthca::test
