// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes work requests that change memory keys: fast registration, invalidation, binding of
// windows (IBA 10.6.5, 10.6.7 and 11.4.1.1).
#include <algorithm>
#include <array>

#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::mpt_key;
using hw::mlx4::MptEntry;
using hw::mlx4::MttEntry;
namespace mpt_status = hw::mlx4::mpt_status;

namespace
{

// Returns true if @entry has the index of @key, whose variant (low eight bits) may differ.
bool same_index(const MptEntry &entry, std::uint32_t key)
{
	constexpr std::uint32_t index_mask = 0x00ffffff;
	return (MptEntry::mem_key.get(entry.bytes) & index_mask) == key >> 8;
}

} // namespace

MemoryError MemoryTable::fast_register(const FastRegister &request, std::uint32_t pd)
{
	const std::uint32_t key = request.key;
	MptEntry entry;
	if (!read_entry(key >> 8, entry) || !same_index(entry, key))
		return MemoryError::invalid_key;
	if (!MptEntry::region.get(entry.bytes) ||
	    !MptEntry::fast_register_enable.get(entry.bytes) ||
	    MptEntry::status.get(entry.bytes) != mpt_status::free)
		return MemoryError::bad_request;
	if (MptEntry::pd.get(entry.bytes) != pd)
		return MemoryError::protection_domain;

	const std::uint32_t shift = request.page_shift;
	if (shift < 12 || shift > 31)
		return MemoryError::bad_request;
	const std::uint64_t page = std::uint64_t{1} << shift;
	const std::uint64_t start = request.start;
	const std::uint64_t length = request.length;
	if (length && start + (length - 1) < start)
		return MemoryError::bounds;
	const std::uint64_t lead = start & (page - 1);
	// The sum of lead and length cannot wrap: see above.
	const std::uint64_t pages = length ? ((lead + length - 1) >> shift) + 1 : 0;
	if (pages > MptEntry::mtt_size.get(entry.bytes) || pages > kMaxFastRegisterPages)
		return MemoryError::bounds;

	std::array<std::byte, kMaxFastRegisterPages * MttEntry::size> copy;
	const auto list = std::span(copy).first(pages * MttEntry::size);
	if (!memory_ || !memory_->read(request.page_list, list) ||
	    !write_mtts(MptEntry::mtt_offset.get(entry.bytes), list))
		return MemoryError::translation;

	MptEntry::status.set(entry.bytes, mpt_status::valid);
	MptEntry::mem_key.set(entry.bytes, mpt_key(key));
	MptEntry::remote_atomic.set(entry.bytes, request.rights.remote_atomic);
	MptEntry::remote_write.set(entry.bytes, request.rights.remote_write);
	MptEntry::remote_read.set(entry.bytes, request.rights.remote_read);
	MptEntry::local_write.set(entry.bytes, request.rights.local_write);
	MptEntry::local_read.set(entry.bytes, request.rights.local_read);
	MptEntry::bind_enable.set(entry.bytes, request.rights.bind);
	MptEntry::physical.set(entry.bytes, 0);
	MptEntry::length64.set(entry.bytes, 0);
	MptEntry::start.set(entry.bytes, start);
	MptEntry::length.set(entry.bytes, length);
	MptEntry::entity_size.set(entry.bytes, shift);
	return write_entry(key >> 8, entry) ? MemoryError::none : MemoryError::translation;
}

MemoryError MemoryTable::invalidate(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
				    bool remote)
{
	MptEntry entry;
	if (!read_entry(key >> 8, entry) || MptEntry::mem_key.get(entry.bytes) != mpt_key(key))
		return MemoryError::invalid_key;
	const std::uint32_t status = MptEntry::status.get(entry.bytes);
	if (status != mpt_status::valid && status != mpt_status::free)
		return MemoryError::invalid_key;
	const bool region = MptEntry::region.get(entry.bytes);
	// Ordinary regions and type-1 windows cannot be invalidated by work requests.
	if (region ? !MptEntry::fast_register_enable.get(entry.bytes)
		   : !MptEntry::bound_to_qp.get(entry.bytes) && status != mpt_status::free)
		return MemoryError::bad_request;
	if (remote && region && !MptEntry::remote_invalidate_enable.get(entry.bytes))
		return MemoryError::permission;
	if (MptEntry::pd.get(entry.bytes) != pd)
		return MemoryError::protection_domain;
	if (!region && MptEntry::bound_to_qp.get(entry.bytes) &&
	    MptEntry::qpn.get(entry.bytes) != qpn)
		return MemoryError::protection_domain;
	if (region && MptEntry::window_count.get(entry.bytes))
		return MemoryError::bad_request;
	if (!region)
		release_window(entry);
	MptEntry::status.set(entry.bytes, mpt_status::free);
	return write_entry(key >> 8, entry) ? MemoryError::none : MemoryError::translation;
}

void MemoryTable::release_window(MptEntry &window)
{
	const std::uint32_t lkey = MptEntry::lkey.get(window.bytes);
	MptEntry region;
	if (lkey && read_entry(lkey >> 8, region) &&
	    MptEntry::mem_key.get(region.bytes) == mpt_key(lkey)) {
		const std::uint32_t count = MptEntry::window_count.get(region.bytes);
		if (count) {
			MptEntry::window_count.set(region.bytes, count - 1);
			write_entry(lkey >> 8, region);
		}
	}
	MptEntry::lkey.set(window.bytes, 0);
	MptEntry::bound_to_qp.set(window.bytes, 0);
	MptEntry::length.set(window.bytes, 0);
	MptEntry::length64.set(window.bytes, 0);
}

MemoryError MemoryTable::bind_window(const BindWindow &request, std::uint32_t pd, std::uint32_t qpn)
{
	const std::uint32_t rkey = request.new_rkey;
	const bool type2 = request.type_2;
	MptEntry window;
	if (!read_entry(rkey >> 8, window) || !same_index(window, rkey) ||
	    MptEntry::region.get(window.bytes))
		return MemoryError::invalid_key;
	const std::uint32_t status = MptEntry::status.get(window.bytes);
	// A type-2 window can be bound if it is free, a type-1 window at any time.
	if (type2 ? status != mpt_status::free : status != mpt_status::valid)
		return MemoryError::bad_request;
	if (MptEntry::pd.get(window.bytes) != pd)
		return MemoryError::protection_domain;
	if (request.zero_based)
		return MemoryError::bad_request; // QUERY_DEV_CAP does not report it

	const std::uint64_t address = request.address;
	const std::uint64_t length = request.length;
	const std::uint32_t lkey = request.region_lkey;
	if (length == 0) {
		if (type2)
			return MemoryError::bad_request;
		release_window(window); // unbinds
		MptEntry::mem_key.set(window.bytes, mpt_key(rkey));
		return write_entry(rkey >> 8, window) ? MemoryError::none
						      : MemoryError::translation;
	}

	MptEntry region;
	if (!read_entry(lkey >> 8, region) ||
	    MptEntry::mem_key.get(region.bytes) != mpt_key(lkey) ||
	    MptEntry::status.get(region.bytes) != mpt_status::valid ||
	    !MptEntry::region.get(region.bytes))
		return MemoryError::invalid_key;
	if (MptEntry::pd.get(region.bytes) != pd)
		return MemoryError::protection_domain;
	const bool writes = request.rights.remote_write || request.rights.remote_atomic;
	if (!MptEntry::bind_enable.get(region.bytes) ||
	    (writes && !MptEntry::local_write.get(region.bytes)))
		return MemoryError::permission;
	if (address + (length - 1) < address)
		return MemoryError::bounds;
	if (!MptEntry::length64.get(region.bytes)) {
		const std::uint64_t start = MptEntry::start.get(region.bytes);
		const std::uint64_t size = MptEntry::length.get(region.bytes);
		if (address < start || address - start >= size || length > size - (address - start))
			return MemoryError::bounds;
	}

	release_window(window);
	// Read the region again, because it may have lost this window above.
	if (!read_entry(lkey >> 8, region))
		return MemoryError::translation;
	MptEntry::window_count.set(region.bytes, MptEntry::window_count.get(region.bytes) + 1);
	MptEntry::status.set(window.bytes, mpt_status::valid);
	MptEntry::mem_key.set(window.bytes, mpt_key(rkey));
	MptEntry::remote_atomic.set(window.bytes, request.rights.remote_atomic);
	MptEntry::remote_write.set(window.bytes, request.rights.remote_write);
	MptEntry::remote_read.set(window.bytes, request.rights.remote_read);
	MptEntry::start.set(window.bytes, address);
	MptEntry::length.set(window.bytes, length);
	MptEntry::lkey.set(window.bytes, lkey);
	MptEntry::qpn.set(window.bytes, type2 ? qpn : 0);
	MptEntry::bound_to_qp.set(window.bytes, type2);
	if (!write_entry(lkey >> 8, region) || !write_entry(rkey >> 8, window))
		return MemoryError::translation;
	return MemoryError::none;
}

} // namespace weft::mellanox_icm
