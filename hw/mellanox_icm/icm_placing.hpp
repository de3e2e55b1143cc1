// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates ICM addresses for the context tables.
#pragma once
#include <kern/bits.hpp>
#include "icm_table.hpp"

namespace mellanox_icm
{

/*
 * Places the first `count` extents in order of decreasing size from address 0, so that each is
 * aligned to its own size. Extents of equal size keep their order. Returns the size of all
 * together. Context: any.
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
		// Pages are the unit of mapping: no two regions share one.
		address += kern::align_up(extents[largest].bytes(), u64{4096});
	}
	return address;
}

} // namespace mellanox_icm
