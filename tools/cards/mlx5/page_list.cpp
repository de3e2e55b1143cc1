// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/page_list.hpp"

#include <algorithm>

#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

std::optional<PageList::Problem> PageList::create(PageBudget &budget, const PageLayout &layout,
						  std::span<const std::uint8_t> entries,
						  PageList &out)
{
	constexpr std::size_t entry = 8;
	const unsigned shift = 12 + layout.log_page_size;
	if (shift > limits::kMostPageShift)
		return Problem::page_size;
	PageList list;
	list.shift_ = shift;
	list.start_ = std::uint64_t{layout.page_offset} << (shift - 6);
	const std::uint64_t page = std::uint64_t{1} << shift;
	const std::uint64_t count = (list.start_ + layout.bytes + page - 1) >> shift;
	if (count > entries.size() / entry)
		return Problem::too_few_pages;
	auto share = PageShare::take(budget, count);
	if (!share)
		return Problem::budget;
	list.share_ = std::move(*share);
	list.pages_.reserve(count);
	for (std::size_t i = 0; i < count; ++i)
		list.pages_.push_back(hw::mlx5::load_be64(entries.data(), i * entry) & ~(page - 1));
	out = std::move(list);
	return std::nullopt;
}

// Calls @piece(bus address, offset in the data, size) for the part in each page.
template<typename Piece>
bool PageList::walk(std::uint64_t offset, std::size_t size, Piece &&piece) const
{
	const std::uint64_t page = std::uint64_t{1} << shift_;
	for (std::size_t done = 0; done < size;) {
		const std::uint64_t place = start_ + offset + done;
		if (place >> shift_ >= pages_.size())
			return false;
		const std::size_t step =
			std::min<std::uint64_t>(size - done, page - (place & (page - 1)));
		if (!piece(bus_address(offset + done), done, step))
			return false;
		done += step;
	}
	return true;
}

bool PageList::read(const GuestMemory *memory, std::uint64_t offset,
		    std::span<std::byte> data) const
{
	return memory &&
	       walk(offset, data.size(), [&](std::uint64_t bus, std::size_t at, std::size_t size) {
		       return memory->read(bus, data.subspan(at, size));
	       });
}

bool PageList::write(GuestMemory *memory, std::uint64_t offset,
		     std::span<const std::byte> data) const
{
	return memory &&
	       walk(offset, data.size(), [&](std::uint64_t bus, std::size_t at, std::size_t size) {
		       return memory->write(bus, data.subspan(at, size));
	       });
}

} // namespace weft::mlx5
