// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Simulates the DMA memory of a device that cannot access all memory: a bounce buffer, like
// swiotlb. Coherent memory is allocated in it. Other memory is copied into it and back whenever the
// DMA API transfers ownership, so a driver that omits a dma_sync call reads stale data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace sim
{

class Arena
{
public:
	Arena() = default;
	explicit Arena(std::span<std::byte> memory);
	/* Makes all of the memory accessible to the sanitizer again. */
	~Arena();
	Arena(const Arena &) = delete;
	Arena &operator=(const Arena &) = delete;

	explicit operator bool() const { return !memory_.empty(); }
	/*
	 * Returns a piece of zeroed memory, or nullptr if there is not enough. The sanitizer
	 * reports accesses outside of the pieces that are in use.
	 */
	std::byte *take(std::size_t size);
	void release(std::byte *piece);
	/* Returns the piece that contains an address. */
	std::span<std::byte> piece_at(std::uint64_t address) const;
	bool empty() const { return taken_.empty(); }

private:
	std::span<std::byte> memory_;
	std::map<std::byte *, std::size_t> taken_;
};

} // namespace sim
