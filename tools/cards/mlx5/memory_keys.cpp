// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/memory_keys.hpp"

#include <algorithm>

namespace weft::mlx5
{

using hw::mlx5::MkeyContext;

namespace
{

bool allows(const KeyRights &rights, KeyAccess access)
{
	switch (access) {
	case KeyAccess::local_read:
		return rights.local_read;
	case KeyAccess::local_write:
		return rights.local_write;
	case KeyAccess::remote_read:
		return rights.remote_read;
	case KeyAccess::remote_write:
		return rights.remote_write;
	case KeyAccess::remote_atomic:
		break;
	}
	return rights.remote_atomic;
}

// Returns the right that a piece's key must grant: a local one, because remote rights are checked
// in the key that has the pieces.
KeyAccess local_part(KeyAccess access)
{
	switch (access) {
	case KeyAccess::local_read:
	case KeyAccess::remote_read:
		return KeyAccess::local_read;
	case KeyAccess::local_write:
	case KeyAccess::remote_write:
	case KeyAccess::remote_atomic:
		break;
	}
	return KeyAccess::local_write;
}

// Returns true if [@address, @address + @length) lies in the key's range. Lengths are not 0.
bool within(const MemoryKey &key, std::uint64_t address, std::uint64_t length)
{
	if (address + (length - 1) < address)
		return false;
	return key.whole_space || (address >= key.start && address - key.start < key.length &&
				   length <= key.length - (address - key.start));
}

void append(std::vector<BusRange> &out, std::size_t first, BusRange range)
{
	if (out.size() > first && out.back().address + out.back().length == range.address)
		out.back().length += range.length;
	else
		out.push_back(range);
}

} // namespace

MemoryKey *MemoryKeys::find(std::uint32_t index) const
{
	return index < keys_.size() ? keys_.find(index) : nullptr;
}

bool MemoryKeys::holds(std::uint32_t number) const
{
	const MemoryKey *const key = find(number >> 8);
	// Without access to memory no key is valid, and packets in flight lose access.
	return memory_ && key && !key->free && key->number() == number;
}

bool MemoryKeys::has_parts(std::uint32_t number) const
{
	const MemoryKey *const key = find(number >> 8);
	return key && key->indirect();
}

MemoryError MemoryKeys::check(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			      const MemoryKey *&key) const
{
	if (!holds(use.key))
		return MemoryError::invalid_key;
	key = find(use.key >> 8);
	if (key->pd != use.pd || (key->qpn != MkeyContext::any_qp && key->qpn != use.qpn))
		return MemoryError::protection_domain;
	if (!allows(key->rights, use.access))
		return MemoryError::permission;
	return within(*key, address, length) ? MemoryError::none : MemoryError::bounds;
}

MemoryError MemoryKeys::resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				std::vector<BusRange> &out) const
{
	const std::size_t first = out.size();
	const MemoryError error = resolve(use, address, length, 0, out);
	if (error != MemoryError::none)
		out.resize(first);
	return error;
}

// After an error, @out may contain ranges that must be ignored.
MemoryError MemoryKeys::resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				unsigned depth, std::vector<BusRange> &out) const
{
	if (length == 0)
		return MemoryError::none;
	const MemoryKey *key = nullptr;
	if (const MemoryError error = check(use, address, length, key); error != MemoryError::none)
		return error;
	switch (key->mode) {
	case MkeyMode::physical:
		out.push_back({address, length});
		return MemoryError::none;
	case MkeyMode::pages: {
		const std::uint64_t page = std::uint64_t{1} << key->page_shift;
		// The first page is the one in which the range starts.
		return pages(*key, address - (key->start & ~(page - 1)), length, out);
	}
	case MkeyMode::pieces:
	case MkeyMode::equal_pieces:
		return depth < limits::kMostIndirections
			       ? pieces(*key, use, address - key->start, length, depth + 1, out)
			       : MemoryError::translation;
	}
	return MemoryError::translation;
}

MemoryError MemoryKeys::pages(const MemoryKey &key, std::uint64_t offset, std::uint64_t length,
			      std::vector<BusRange> &out) const
{
	const std::uint64_t page = std::uint64_t{1} << key.page_shift;
	const std::size_t first = out.size();
	while (length) {
		const std::uint64_t number = offset >> key.page_shift;
		if (number >= key.pages.size())
			return MemoryError::translation;
		const std::uint64_t inside = offset & (page - 1);
		const std::uint64_t step = std::min(length, page - inside);
		append(out, first, {(key.pages[number] & ~(page - 1)) + inside, step});
		offset += step;
		length -= step;
	}
	return MemoryError::none;
}

// A piece's key is checked like that of a local request: domain, local rights and bounds. So a
// memory window gives remote access to a region without remote rights (IBA 10.6.7.2), and a driver
// can use its key for all memory in a list.
MemoryError MemoryKeys::pieces(const MemoryKey &key, const KeyUse &use, std::uint64_t offset,
			       std::uint64_t length, unsigned depth,
			       std::vector<BusRange> &out) const
{
	const bool equal = key.mode == MkeyMode::equal_pieces;
	while (length) {
		// Search again for each piece, because any number of empty pieces may be in
		// between.
		const std::uint64_t number =
			equal ? offset >> key.page_shift
			      : static_cast<std::uint64_t>(
					std::ranges::upper_bound(key.pieces, offset, {},
								 &MemoryKey::Piece::end) -
					key.pieces.begin());
		if (number >= key.pieces.size())
			return MemoryError::translation;
		const MemoryKey::Piece *const piece = &key.pieces[number];
		const std::uint64_t begin = equal         ? number << key.page_shift
					    : number == 0 ? 0
							  : key.pieces[number - 1].end;
		const std::uint64_t end =
			equal ? begin + (std::uint64_t{1} << key.page_shift) : piece->end;
		const std::uint64_t step = std::min(length, end - offset);
		if (MemoryKey *const named = find(piece->key >> 8))
			named->named = true;
		KeyUse inner = use;
		inner.key = piece->key;
		inner.access = local_part(use.access);
		if (const MemoryError error =
			    resolve(inner, piece->address + (offset - begin), step, depth, out);
		    error != MemoryError::none)
			return error;
		offset += step;
		length -= step;
	}
	return MemoryError::none;
}

MemoryError MemoryKeys::translate(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				  std::vector<MemorySegment> &out) const
{
	ranges_.clear();
	if (const MemoryError error = resolve(use, address, length, ranges_);
	    error != MemoryError::none)
		return error;
	return to_segments(memory_, use.access, ranges_, out);
}

MemoryKeys::Created MemoryKeys::create(const std::uint8_t *context, std::uint32_t octwords,
				       std::span<const std::uint8_t> list, std::uint32_t &index)
{
	auto key = std::make_unique<MemoryKey>();
	key->mode = static_cast<MkeyMode>(MkeyContext::mode_high.get(context) << 2 |
					  MkeyContext::mode_low.get(context));
	key->page_shift = MkeyContext::log_page_size.get(context);
	key->octwords = MkeyContext::octwords.get(context);
	key->variant = static_cast<std::uint8_t>(MkeyContext::variant.get(context));
	key->free = MkeyContext::free.get(context);
	key->umr = MkeyContext::umr_enable.get(context);
	key->remote_invalidate = MkeyContext::remote_invalidate.get(context);
	key->whole_space = MkeyContext::length64.get(context);
	key->rights = {.local_read = MkeyContext::local_read.get(context) != 0,
		       .local_write = MkeyContext::local_write.get(context) != 0,
		       .remote_read = MkeyContext::remote_read.get(context) != 0,
		       .remote_write = MkeyContext::remote_write.get(context) != 0,
		       .remote_atomic = MkeyContext::atomic.get(context) != 0};
	key->pd = MkeyContext::pd.get(context);
	key->qpn = MkeyContext::qpn.get(context);
	key->start = MkeyContext::start.get(context);
	key->length = MkeyContext::length.get(context);
	// Not modelled: device memory, signatures, and whole-space keys except for bus addresses.
	if (key->mode > MkeyMode::equal_pieces || MkeyContext::bsf_enable.get(context) ||
	    (key->whole_space && key->mode != MkeyMode::physical))
		return Created::bad_parameter;
	const bool has_pages = key->mode == MkeyMode::pages || key->mode == MkeyMode::equal_pieces;
	if (has_pages && !key->free &&
	    (key->page_shift < limits::kLeastPageShift || key->page_shift > limits::kMostPageShift))
		return Created::bad_parameter;
	const std::uint32_t room = key->indirect() ? std::uint32_t{1} << limits::kLogPieces
						   : limits::kMostKeyPages / 2;
	if (key->octwords > room)
		return Created::limit;
	if (key->mode != MkeyMode::physical && octwords) {
		if (octwords > key->octwords || octwords > list.size() / hw::mlx5::octword)
			return Created::bad_parameter;
		if (write_list(*key, 0, std::as_bytes(list.first(octwords * hw::mlx5::octword))) !=
		    MemoryError::none)
			return Created::limit;
	}
	const auto number = numbers_.take();
	if (!number)
		return Created::limit;
	key->index = index = *number;
	keys_.insert(index, std::move(key));
	return Created::done;
}

bool MemoryKeys::remove(std::uint32_t index)
{
	MemoryKey *const key = find(index);
	if (!key)
		return false;
	note_change(*key);
	keys_.remove(index);
	numbers_.give(index);
	return true;
}

void MemoryKeys::reset()
{
	keys_.resize(limits::kLogKeys);
	numbers_.reset();
	lost_parts_ = false;
}

} // namespace weft::mlx5
