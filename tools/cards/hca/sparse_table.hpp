// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a table of objects by number, where numbers may reach 2^24 but few are used. It has
// two levels, of which the second is allocated on first use. A lookup takes two array accesses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::hca
{

template<typename T>
class SparseTable
{
public:
	// Creates an empty table with 2^@log_size slots.
	explicit SparseTable(unsigned log_size = 0) { resize(log_size); }

	// Removes all objects and gives the table 2^@log_size slots.
	void resize(unsigned log_size)
	{
		pages_.clear();
		pages_.resize(((std::size_t{1} << log_size) + kPage - 1) / kPage);
		mask_ = static_cast<std::uint32_t>((std::uint64_t{1} << log_size) - 1);
		objects_ = 0;
	}

	std::uint32_t size() const { return mask_ + 1; }
	// Number of occupied slots.
	std::uint32_t objects() const { return objects_; }
	// Returns the slot of a number, which may have bits beyond the table's size.
	std::uint32_t slot(std::uint32_t number) const { return number & mask_; }

	// Returns the object in the slot of @number, or null if the slot is empty.
	T *find(std::uint32_t number) const
	{
		const std::uint32_t at = slot(number);
		const auto &page = pages_[at / kPage];
		return page ? (*page)[at % kPage].get() : nullptr;
	}
	// Fills the slot of @number. A previous object in it is destroyed.
	T &insert(std::uint32_t number, std::unique_ptr<T> object)
	{
		const std::uint32_t at = slot(number);
		auto &page = pages_[at / kPage];
		if (!page)
			page = std::make_unique<Page>();
		auto &place = (*page)[at % kPage];
		objects_ += place ? 0 : 1;
		place = std::move(object);
		return *place;
	}
	std::unique_ptr<T> remove(std::uint32_t number)
	{
		const std::uint32_t at = slot(number);
		const auto &page = pages_[at / kPage];
		if (!page || !(*page)[at % kPage])
			return nullptr;
		--objects_;
		return std::move((*page)[at % kPage]);
	}
	// Calls @f(T &) for each object, in order of slots. @f may not change the table.
	template<typename F>
	void for_each(F &&f) const
	{
		for (const auto &page : pages_) {
			if (!page)
				continue;
			for (const auto &object : *page)
				if (object)
					f(*object);
		}
	}

private:
	static constexpr std::size_t kPage = 512;
	using Page = std::array<std::unique_ptr<T>, kPage>;

	std::vector<std::unique_ptr<Page>> pages_;
	std::uint32_t mask_ = 0;
	std::uint32_t objects_ = 0;
};

} // namespace weft::hca
