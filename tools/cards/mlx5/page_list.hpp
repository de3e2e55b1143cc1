// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and writes the memory of a queue, whose pages were listed in the command that created the
// queue. Also limits the number of pages in all lists of a card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/guest_memory.hpp"

namespace weft::mlx5
{

// PageBudget - limits the page addresses in all objects of a card together.
class PageBudget
{
public:
	explicit PageBudget(std::size_t most) : left_(most) {}

	// Returns false, without effect, if fewer are left.
	bool take(std::size_t pages)
	{
		if (pages > left_)
			return false;
		left_ -= pages;
		return true;
	}
	void give(std::size_t pages) { left_ += pages; }

private:
	std::size_t left_;
};

// PageShare - a number of pages taken from a budget, which outlives it. They are returned when it
// is destroyed.
class PageShare
{
public:
	PageShare() = default;
	PageShare(PageShare &&other) noexcept
	    : budget_(std::exchange(other.budget_, nullptr)), pages_(std::exchange(other.pages_, 0))
	{
	}
	PageShare &operator=(PageShare &&other) noexcept
	{
		std::swap(budget_, other.budget_);
		std::swap(pages_, other.pages_);
		return *this;
	}
	~PageShare()
	{
		if (budget_)
			budget_->give(pages_);
	}

	// Returns nothing if the budget has fewer left.
	static std::optional<PageShare> take(PageBudget &budget, std::size_t pages)
	{
		if (!budget.take(pages))
			return std::nullopt;
		PageShare share;
		share.budget_ = &budget;
		share.pages_ = pages;
		return share;
	}
	std::size_t pages() const { return pages_; }

private:
	PageBudget *budget_ = nullptr;
	std::size_t pages_ = 0;
};

// PageLayout - the description of the pages in a queue's context.
struct PageLayout {
	unsigned log_page_size = 0;    // minus 12
	std::uint32_t page_offset = 0; // start of the queue in its first page, in 64ths of a page
	std::uint64_t bytes = 0;       // size of the queue
};

class PageList
{
public:
	enum class Problem : std::uint8_t { page_size, too_few_pages, budget };

	PageList() = default;
	// @entries: the list in the command, 8 bytes per entry. If there is a problem, @out is
	// unchanged.
	static std::optional<Problem> create(PageBudget &budget, const PageLayout &layout,
					     std::span<const std::uint8_t> entries, PageList &out);

	// Returns the bus address of the byte @offset of the queue, which must be inside of it. A
	// naturally aligned object of at most 4 KiB is contiguous there.
	std::uint64_t bus_address(std::uint64_t offset) const
	{
		offset += start_;
		return pages_[offset >> shift_] + (offset & ((std::uint64_t{1} << shift_) - 1));
	}
	// Return false if a part is not accessible; a write may then have been done in part.
	bool read(const GuestMemory *memory, std::uint64_t offset, std::span<std::byte> data) const;
	bool write(GuestMemory *memory, std::uint64_t offset,
		   std::span<const std::byte> data) const;

	unsigned log_page_size() const { return shift_ - 12; }
	std::uint32_t page_offset() const
	{
		return static_cast<std::uint32_t>(start_ >> (shift_ - 6));
	}

private:
	template<typename Piece>
	bool walk(std::uint64_t offset, std::size_t size, Piece &&piece) const;

	std::vector<std::uint64_t> pages_;
	PageShare share_;
	unsigned shift_ = 12;
	std::uint64_t start_ = 0; // bytes
};

} // namespace weft::mlx5
