// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// DMA-able memory of a device that cannot reach all memory (a bounce buffer, like swiotlb).
// Coherent memory is allocated in it; other memory is copied into it and back whenever the DMA API
// passes ownership. A driver that omits a dma_sync call sees stale data.
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
	/* Makes all of the memory accessible again. */
	~Arena();
	Arena(const Arena &) = delete;
	Arena &operator=(const Arena &) = delete;

	explicit operator bool() const { return !memory_.empty(); }
	/*
	 * Returns nullptr if none is left. It is not shared, and not accessed after it is released.
	 */
	std::byte *take(std::size_t size);
	void release(std::byte *piece);
	/* The piece that an address lies in; its beginning and its size. */
	std::span<std::byte> piece_at(std::uint64_t address) const;
	bool empty() const { return taken_.empty(); }

private:
	std::span<std::byte> memory_;
	std::map<std::byte *, std::size_t> taken_;
};

} // namespace sim
