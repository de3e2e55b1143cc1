// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "arena.hpp"
#include <algorithm>
#include <bit>
#include <cstring>
#include <sanitizer/asan_interface.h>

namespace sim
{

namespace
{

constexpr std::size_t least = 64;
// Coherent memory of at least a page is aligned to its size, up to this alignment.
constexpr std::size_t most_aligned = 1 << 20;

} // namespace

Arena::Arena(std::span<std::byte> memory) : memory_(memory)
{
	__asan_poison_memory_region(memory_.data(), memory_.size());
}

Arena::~Arena()
{
	__asan_unpoison_memory_region(memory_.data(), memory_.size());
}

/* Takes the first gap that is large enough. */
std::byte *Arena::take(std::size_t size)
{
	const std::size_t whole = std::bit_ceil(std::max(size, least));
	const std::uintptr_t alignment = std::min(whole, most_aligned);
	const auto aligned = [&](std::byte *at) {
		return reinterpret_cast<std::byte *>(
			(reinterpret_cast<std::uintptr_t>(at) + alignment - 1) & ~(alignment - 1));
	};
	std::byte *at = aligned(memory_.data());
	for (const auto &[begin, bytes] : taken_) {
		if (at + whole <= begin)
			break;
		at = aligned(begin + std::bit_ceil(std::max(bytes, least)));
	}
	if (at + whole > memory_.data() + memory_.size())
		return nullptr;
	taken_.emplace(at, size);
	__asan_unpoison_memory_region(at, size);
	std::memset(at, 0, size);
	return at;
}

void Arena::release(std::byte *piece)
{
	const auto found = taken_.find(piece);

	__asan_poison_memory_region(piece, found->second);
	taken_.erase(found);
}

std::span<std::byte> Arena::piece_at(std::uint64_t address) const
{
	auto *at = reinterpret_cast<std::byte *>(address);
	auto found = taken_.upper_bound(at);

	if (found == taken_.begin())
		return {};
	--found;
	return at < found->first + found->second ? std::span(found->first, found->second)
						 : std::span<std::byte>();
}

} // namespace sim
