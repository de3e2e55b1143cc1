// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Assigns the addresses of the context tables in ICM, the card's context memory.
#pragma once
#include <kern/bits.hpp>
#include <kern/log.hpp>
#include "icm_table.hpp"

namespace mellanox_icm
{

/*
 * Assigns ICM addresses, from 0, to the first `count` extents in order of decreasing size, so that
 * each is aligned to its own size. Extents of equal size keep their order. Returns the total size.
 * Context: any.
 */
template<unsigned int count>
u64 place_by_size(IcmExtent *extents)
{
	bool placed[count] = {};
	u64 address = 0;
	for (unsigned int n = 0; n < count; n++) {
		unsigned int largest = count;
		for (unsigned int i = 0; i < count; i++)
			if (!placed[i] &&
			    (largest == count || extents[i].bytes() > extents[largest].bytes()))
				largest = i;
		placed[largest] = true;
		extents[largest].base = address;
		// ICM is mapped in pages, so two regions must not share a page.
		address += kern::align_up(extents[largest].bytes(), u64{4096});
	}
	return address;
}

/*
 * The extents of a card's context tables. Region: the card's enumeration of the tables.
 */
template<class Region, unsigned int regions>
struct IcmExtents {
	IcmExtent extent[regions];
	u64 total_bytes;

	const IcmExtent &operator[](Region region) const
	{
		return extent[static_cast<int>(region)];
	}
	/* Sets the size of a table. place_by_size() sets its address. */
	void set_size(Region region, u32 entry_bytes, u32 log_entries)
	{
		extent[static_cast<int>(region)] = {0, entry_bytes, log_entries};
	}
	/* Errors: ENOSPC if the tables are larger than the card's ICM. Context: any. */
	kern::Result<> check_total(u64 max_icm_bytes) const
	{
		if (total_bytes <= max_icm_bytes)
			return {};
		kern_error("the context tables need %#lx bytes, the card supports %#lx\n",
			   total_bytes, max_icm_bytes);
		return kern::Error{-ENOSPC};
	}
};

/*
 * Returns the smaller of two numbers: the number of objects that the driver requests, and the
 * card's limit.
 */
constexpr u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

} // namespace mellanox_icm
