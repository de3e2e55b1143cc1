// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads the error buffer, in which the card's firmware reports a fatal error.
#pragma once
#include <kern/mmio.hpp>

namespace mellanox_icm
{

/* Value of any register after the card has been removed. */
inline constexpr u32 removed_card = ~0u;

class ErrorBuffer
{
public:
	/*
	 * The buffer consists of @dwords dwords from @offset, which must be within the BAR. Each of
	 * the first @error_dwords may report an error; the others are details.
	 */
	ErrorBuffer(const kern::Mmio &bar, u64 offset, u32 dwords, u32 error_dwords)
	    : bar_(bar), offset_(offset), dwords_(dwords),
	      error_dwords_(error_dwords < dwords ? error_dwords : dwords)
	{
	}

	/* Returns the first word that reports an error, or 0. Context: any. */
	u32 first_error() const
	{
		for (u32 i = 0; i < error_dwords_; i++)
			if (const u32 error = word(i))
				return error;
		return 0;
	}
	/* Calls body(index, word) for each word that is logged. */
	template<class Body>
	void for_each(Body body) const
	{
		for (u32 i = 0; i < dwords_ && i < max_reported; i++)
			body(i, word(i));
	}

private:
	static constexpr u32 max_reported = 16;

	u32 word(u32 index) const { return bar_.read_be32(offset_ + index * sizeof(u32)); }

	const kern::Mmio &bar_;
	u64 offset_;
	u32 dwords_;
	u32 error_dwords_;
};

} // namespace mellanox_icm
