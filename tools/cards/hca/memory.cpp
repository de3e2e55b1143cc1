// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/memory.hpp"

namespace weft::hca
{

MemoryError to_segments(const GuestMemory *memory, KeyAccess access,
			std::span<const BusRange> ranges, std::vector<MemorySegment> &out)
{
	const bool reads = access == KeyAccess::local_read || access == KeyAccess::remote_read;
	const std::size_t first = out.size();
	for (const BusRange &range : ranges) {
		if (!memory || !memory->translate(range.address, range.length,
						  reads ? Access::read : Access::write, out)) {
			out.resize(first);
			return MemoryError::translation;
		}
	}
	return MemoryError::none;
}

} // namespace weft::hca
