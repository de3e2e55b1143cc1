// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the allocator of send and receive queues in a part of the card's memory, and the accessor
// of a single queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <hw/amso1100/messages.hpp>

#include "cards/amso1100/bytes.hpp"

namespace weft::amso1100
{

class QueueWindow
{
public:
	// Offset from the register page.
	static constexpr std::uint64_t kStart = 0x400000;
	static constexpr std::uint64_t kEnd = kStart + (64 << 20);
	static constexpr std::uint64_t kAlignment = 4096;

	// Allocates zeroed queue memory. Returns nothing if there is no space.
	std::optional<std::uint64_t> allocate(std::size_t size)
	{
		std::uint64_t start = kStart;
		for (const auto &[at, area] : areas_) {
			if (at - start >= rounded(size))
				break;
			start = at + rounded(area.size());
		}
		if (rounded(size) > kEnd - start)
			return std::nullopt;
		areas_.emplace(start, std::vector<std::byte>(size));
		return start;
	}
	void free(std::uint64_t start) { areas_.erase(start); }
	// Returns the area that starts at @start, which must exist.
	std::span<std::byte> at(std::uint64_t start) { return areas_.at(start); }

	// Access offsets from kStart to kEnd. Parts that belong to no queue read as 0, and writes
	// to them are ignored.
	void read(std::uint64_t offset, std::span<std::byte> data)
	{
		const auto part = find(offset, data.size());
		std::ranges::copy(part, data.begin());
	}
	void write(std::uint64_t offset, std::span<const std::byte> data)
	{
		const auto part = find(offset, data.size());
		std::ranges::copy(data.first(part.size()), part.begin());
	}

private:
	static std::uint64_t rounded(std::size_t size)
	{
		return (size + kAlignment - 1) / kAlignment * kAlignment;
	}
	// Returns the part of the range that is in one area.
	std::span<std::byte> find(std::uint64_t offset, std::size_t size)
	{
		auto after = areas_.upper_bound(offset);
		if (after == areas_.begin())
			return {};
		auto &[start, area] = *--after;
		const std::uint64_t within = offset - start;
		if (within >= area.size())
			return {};
		return std::span(area).subspan(within, std::min(size, area.size() - within));
	}

	std::map<std::uint64_t, std::vector<std::byte>> areas_;
};

// A queue of work requests, which the host fills.
class WorkRing
{
public:
	WorkRing(QueueWindow &window, std::uint64_t start, unsigned depth, std::size_t slot_size)
	    : window_(window), start_(start), depth_(depth), slot_size_(slot_size)
	{
	}
	static std::size_t size(unsigned depth, std::size_t slot_size)
	{
		return hw::amso1100::shared::size + depth * slot_size;
	}

	std::uint64_t start() const { return start_; }
	unsigned depth() const { return depth_; }
	// Returns true if the host's producer index is outside the queue.
	bool bad() const { return produced() >= depth_; }
	// Returns the slot of the next request. After take(), the card owns it.
	std::optional<std::span<const std::byte>> next() const
	{
		if (bad() || produced() == taken_)
			return std::nullopt;
		return window_.at(start_).subspan(hw::amso1100::shared::size + taken_ * slot_size_,
						  slot_size_);
	}
	void take() { taken_ = (taken_ + 1) % depth_; }

private:
	unsigned produced() const
	{
		return load_be<std::uint16_t>(window_.at(start_), hw::amso1100::shared::index);
	}

	QueueWindow &window_;
	const std::uint64_t start_;
	const unsigned depth_;
	const std::size_t slot_size_;
	unsigned taken_ = 0;
};

} // namespace weft::amso1100
