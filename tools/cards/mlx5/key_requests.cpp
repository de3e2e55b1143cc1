// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes work requests that change memory keys: UMR requests, which register, change and
// invalidate them, and invalidation by a SEND (Documentation/mlx5.rst, "UMR requests").
#include <cstring>

#include <hw/mlx5/queues.hpp>

#include "cards/hca/requests.hpp"
#include "cards/mlx5/memory_keys.hpp"

namespace weft::mlx5
{

using hw::mlx5::MkeyContext;
using hw::mlx5::WqeData;
using hw::mlx5::WqeUmr;
namespace umr = hw::mlx5::umr;

namespace
{

// Offset of a request's list, or of the segment that locates the list.
constexpr std::size_t kListOffset = WqeUmr::size + MkeyContext::size;

const std::uint8_t *bytes_of(const UpdateKey &request)
{
	return reinterpret_cast<const std::uint8_t *>(request.segments.data());
}

// Sets the fields of a key's context that the mask selects.
void apply(std::uint64_t mask, const std::uint8_t *context, MemoryKey &key)
{
	const auto take = [mask](std::uint64_t bit, auto &field, auto value) {
		if (mask & bit)
			field = value;
	};
	take(umr::length, key.length, MkeyContext::length.get(context));
	take(umr::page_size, key.page_shift, MkeyContext::log_page_size.get(context));
	take(umr::start, key.start, MkeyContext::start.get(context));
	take(umr::pd, key.pd, MkeyContext::pd.get(context));
	take(umr::remote_invalidate, key.remote_invalidate,
	     MkeyContext::remote_invalidate.get(context) != 0);
	take(umr::variant, key.variant,
	     static_cast<std::uint8_t>(MkeyContext::variant.get(context)));
	take(umr::qpn, key.qpn, MkeyContext::qpn.get(context));
	take(umr::local_read, key.rights.local_read, MkeyContext::local_read.get(context) != 0);
	take(umr::local_write, key.rights.local_write, MkeyContext::local_write.get(context) != 0);
	take(umr::remote_read, key.rights.remote_read, MkeyContext::remote_read.get(context) != 0);
	take(umr::remote_write, key.rights.remote_write,
	     MkeyContext::remote_write.get(context) != 0);
	take(umr::atomic, key.rights.remote_atomic, MkeyContext::atomic.get(context) != 0);
	take(umr::free, key.free, MkeyContext::free.get(context) != 0);
}

} // namespace

// Reads the list of a request: inline, or from the memory that a segment specifies.
MemoryError MemoryKeys::read_list(const UpdateKey &request, const KeyUse &user,
				  std::vector<std::byte> &out) const
{
	const std::uint8_t *const head = bytes_of(request);
	const std::size_t size = std::size_t{WqeUmr::octwords.get(head)} * hw::mlx5::octword;
	const std::span<const std::byte> rest = std::span(request.segments).subspan(kListOffset);
	if (WqeUmr::inline_list.get(head)) {
		if (size > rest.size())
			return MemoryError::bad_request;
		out.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
		return MemoryError::none;
	}
	WqeData segment;
	if (size == 0)
		return MemoryError::none;
	if (rest.size() < sizeof(segment))
		return MemoryError::bad_request;
	std::memcpy(&segment, rest.data(), sizeof(segment));
	if (segment.byte_count < size)
		return MemoryError::bounds;
	// A list in memory of a key with pieces could consist of single bytes, so it is refused.
	const MemoryKey *const source = find(segment.lkey >> 8);
	if (source && source->indirect())
		return MemoryError::bad_request;
	KeyUse use = user;
	use.key = segment.lkey;
	use.access = KeyAccess::local_read;
	std::vector<BusRange> ranges;
	if (const MemoryError error = resolve(use, segment.address, size, ranges);
	    error != MemoryError::none)
		return error;
	out.resize(size);
	std::size_t done = 0;
	for (const BusRange &range : ranges) {
		if (!memory_ ||
		    !memory_->read(range.address, std::span(out).subspan(done, range.length)))
			return MemoryError::translation;
		done += range.length;
	}
	return MemoryError::none;
}

MemoryError MemoryKeys::write_list(MemoryKey &key, std::uint64_t first_octword,
				   std::span<const std::byte> list)
{
	const auto *const in = reinterpret_cast<const std::uint8_t *>(list.data());
	const std::size_t entry = key.indirect() ? hw::mlx5::octword : sizeof(std::uint64_t);
	const std::size_t first = first_octword * hw::mlx5::octword / entry;
	const std::size_t count = list.size() / entry;
	const std::size_t end = first + count;
	if (end > key.pages.size() + key.pieces.size()) {
		// Extend the list. A piece takes three words of memory, a page one.
		auto share = PageShare::take(budget_, (key.indirect() ? 3 : 1) * end);
		if (!share)
			return MemoryError::bounds;
		key.share = std::move(*share);
		if (key.indirect())
			key.pieces.resize(end);
		else
			key.pages.resize(end);
	}
	if (!key.indirect()) {
		for (std::size_t i = 0; i < count; ++i)
			key.pages[first + i] = hw::mlx5::load_be64(in, i * entry);
		return MemoryError::none;
	}
	for (std::size_t i = 0; i < count; ++i) {
		MemoryKey::Piece &piece = key.pieces[first + i];
		piece.length = hw::mlx5::load_be32(in, i * entry);
		piece.key = hw::mlx5::load_be32(in, i * entry + 4);
		piece.address = hw::mlx5::load_be64(in, i * entry + 8);
	}
	std::uint64_t sum = first ? key.pieces[first - 1].end : 0;
	for (std::size_t i = first; i < key.pieces.size(); ++i)
		key.pieces[i].end = sum += key.pieces[i].length;
	return MemoryError::none;
}

MemoryError MemoryKeys::update_key(const UpdateKey &request, const KeyUse &user)
{
	if (request.segments.size() < kListOffset)
		return MemoryError::bad_request;
	const std::uint8_t *const head = bytes_of(request);
	const std::uint8_t *const context = head + WqeUmr::size;
	const std::uint64_t mask = WqeUmr::mask.get(head);
	MemoryKey *const key = find(request.key >> 8);
	if (!key || (!(mask & umr::variant) && key->number() != request.key))
		return MemoryError::invalid_key;
	if (key->pd != user.pd && !request.any_domain)
		return MemoryError::protection_domain;
	if (!key->umr || ((mask & umr::pd) && !request.any_domain) ||
	    (WqeUmr::fail_unless_free.get(head) && !key->free) ||
	    (WqeUmr::fail_if_free.get(head) && key->free))
		return MemoryError::bad_request;
	const std::uint32_t shift =
		mask & umr::page_size ? MkeyContext::log_page_size.get(context) : key->page_shift;
	const bool has_pages = key->mode == MkeyMode::pages || key->mode == MkeyMode::equal_pieces;
	const bool stays_free = mask & umr::free ? MkeyContext::free.get(context) != 0 : key->free;
	// A key may be created without a page size, but needs one when it is used.
	if (has_pages && (!stays_free || (mask & umr::page_size)) &&
	    (shift < limits::kLeastPageShift || shift > limits::kMostPageShift))
		return MemoryError::bad_request;

	const std::uint64_t octwords = WqeUmr::octwords.get(head);
	if (octwords) {
		// Only the operating system may specify page addresses. Keys of pieces are checked
		// when they are used.
		if (!key->indirect() && !request.may_name_pages)
			return MemoryError::permission;
		const std::uint64_t first = WqeUmr::has_offset.get(head)
						    ? std::uint64_t{WqeUmr::offset_high.get(head)}
								      << 16 |
							      WqeUmr::offset_low.get(head)
						    : 0;
		// Linux pads every list to 64 bytes, even if this exceeds the capacity of its
		// smallest keys.
		const std::uint64_t room = (std::uint64_t{key->octwords} + 3) & ~std::uint64_t{3};
		if (key->mode == MkeyMode::physical || first > room || octwords > room - first)
			return MemoryError::bounds;
		std::vector<std::byte> list;
		if (const MemoryError error = read_list(request, user, list);
		    error != MemoryError::none)
			return error;
		if (const MemoryError error = write_list(*key, first, list);
		    error != MemoryError::none)
			return error;
	}
	apply(mask, context, *key);
	note_change(*key);
	return MemoryError::none;
}

MemoryError MemoryKeys::invalidate(std::uint32_t number, std::uint32_t pd, std::uint32_t,
				   bool remote)
{
	MemoryKey *const key = find(number >> 8);
	if (!key || key->free || key->number() != number)
		return MemoryError::invalid_key;
	if (key->pd != pd)
		return MemoryError::protection_domain;
	if (remote && !key->remote_invalidate)
		return MemoryError::bad_request;
	key->free = true;
	note_change(*key);
	return MemoryError::none;
}

} // namespace weft::mlx5
