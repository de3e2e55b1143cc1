// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/memory_table.hpp"

#include <algorithm>
#include <array>

#include <ib/endian.hpp>

#include "cards/mellanox_icm/icm_map.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::Field;
using hw::mlx4::mpt_key;
using hw::mlx4::MptEntry;
using hw::mlx4::MttEntry;
namespace mpt_status = hw::mlx4::mpt_status;

namespace
{

// Limits of page sizes: 4 KiB to 2 GiB. (Drivers write the binary logarithm of the page size.)
constexpr unsigned kMinPageShift = 12;
constexpr unsigned kMaxPageShift = 31;
// Number of MTT entries that are read at once. A message of 128 KiB has this many pages.
constexpr std::size_t kMttRun = 32;

const Field &permission(KeyAccess access)
{
	switch (access) {
	case KeyAccess::local_read:
		return MptEntry::local_read;
	case KeyAccess::local_write:
		return MptEntry::local_write;
	case KeyAccess::remote_read:
		return MptEntry::remote_read;
	case KeyAccess::remote_write:
		return MptEntry::remote_write;
	case KeyAccess::remote_atomic:
		break;
	}
	return MptEntry::remote_atomic;
}

void append(std::vector<BusRange> &out, std::size_t first, BusRange range)
{
	if (out.size() > first && out.back().address + out.back().length == range.address)
		out.back().length += range.length;
	else
		out.push_back(range);
}

// Returns true if [@address, @address + @length) is in the region or window. @length is not 0.
bool within(const MptEntry &entry, std::uint64_t address, std::uint64_t length)
{
	if (address + (length - 1) < address)
		return false;
	if (MptEntry::length64.get(entry.bytes))
		return true;
	const std::uint64_t start = MptEntry::start.get(entry.bytes);
	const std::uint64_t size = MptEntry::length.get(entry.bytes);
	return address >= start && address - start < size && length <= size - (address - start);
}

} // namespace

MemoryTable::MemoryTable(const IcmMap &icm, std::uint32_t reserved_lkey)
    : icm_(icm), reserved_lkey_(reserved_lkey)
{
}

void MemoryTable::set_layout(const Layout &layout)
{
	layout_ = layout;
	const std::uint64_t end =
		layout.dmpt_base % IcmMap::kPageSize + (MptEntry::size << layout.log_dmpts);
	initialised_.assign((end + IcmMap::kPageSize - 1) / IcmMap::kPageSize, false);
}

std::optional<std::uint64_t> MemoryTable::locate_entry(std::uint32_t index) const
{
	const std::uint64_t slot = index & ((std::uint64_t{1} << layout_.log_dmpts) - 1);
	const std::uint64_t offset = slot * MptEntry::size;
	const auto bus = icm_.locate(layout_.dmpt_base + offset, MptEntry::size);
	if (!bus || !memory_)
		return std::nullopt;
	const std::uint64_t lead = layout_.dmpt_base % IcmMap::kPageSize;
	const std::size_t page = (lead + offset) / IcmMap::kPageSize;
	if (page >= initialised_.size())
		return std::nullopt; // no table is set
	if (!initialised_[page]) {
		// The first and the last page may also contain parts of other tables.
		const std::uint64_t end = lead + (MptEntry::size << layout_.log_dmpts);
		const std::uint64_t first = page ? 0 : lead;
		const std::uint64_t size =
			std::min(end - page * IcmMap::kPageSize, IcmMap::kPageSize) - first;
		std::array<std::byte, IcmMap::kPageSize> invalid;
		invalid.fill(std::byte{0xff}); // status: software
		const std::uint64_t start = *bus - *bus % IcmMap::kPageSize;
		if (!memory_->write(start + first, std::span(invalid).first(size)))
			return std::nullopt;
		initialised_[page] = true;
	}
	return bus;
}

bool MemoryTable::read_entry(std::uint32_t index, MptEntry &entry) const
{
	const auto bus = locate_entry(index);
	return bus && memory_->read(*bus, std::as_writable_bytes(std::span(entry.bytes)));
}

bool MemoryTable::write_entry(std::uint32_t index, const MptEntry &entry)
{
	const auto bus = locate_entry(index);
	return bus && memory_->write(*bus, std::as_bytes(std::span(entry.bytes)));
}

void MemoryTable::forget_entries(std::uint64_t icm_address, std::uint64_t size)
{
	if (initialised_.empty() || size == 0)
		return;
	const std::uint64_t table = layout_.dmpt_base / IcmMap::kPageSize;
	const std::uint64_t first = std::max(icm_address / IcmMap::kPageSize, table);
	const std::uint64_t last = std::min((icm_address + (size - 1)) / IcmMap::kPageSize,
					    table + (initialised_.size() - 1));
	if (first <= last)
		std::fill(initialised_.begin() + static_cast<std::ptrdiff_t>(first - table),
			  initialised_.begin() + static_cast<std::ptrdiff_t>(last - table + 1),
			  false);
}

bool MemoryTable::write_mtts(std::uint64_t offset, std::span<const std::byte> entries)
{
	if (offset > ~layout_.mtt_base || !memory_ ||
	    !icm_.covers(layout_.mtt_base + offset, entries.size()))
		return false;
	while (!entries.empty()) {
		const auto place = icm_.find(layout_.mtt_base + offset);
		const std::size_t step = std::min<std::uint64_t>(place->left, entries.size());
		if (!memory_->write(place->bus, entries.first(step)))
			return false;
		entries = entries.subspan(step);
		offset += step;
	}
	return true;
}

std::size_t MemoryTable::mtt_pages(std::uint64_t mtt_offset, std::uint64_t number,
				   std::span<std::uint64_t> pages) const
{
	// The offset has 40 bits and the number at most 52. If the driver's base makes the sum wrap
	// around, the result is another ICM address, which find() checks.
	const std::uint64_t address =
		layout_.mtt_base + (mtt_offset & MttEntry::address_mask) + number * MttEntry::size;
	const auto place = icm_.find(address);
	if (!place || !memory_)
		return 0;
	pages = pages.first(std::min<std::uint64_t>(place->left / MttEntry::size, pages.size()));
	static_assert(MttEntry::size == sizeof(std::uint64_t));
	if (!memory_->read(place->bus, std::as_writable_bytes(pages)))
		return 0;
	std::size_t present = 0;
	for (std::uint64_t &page : pages) {
		const std::uint64_t entry = ib::be64::from_raw(page);
		if (!(entry & MttEntry::present))
			break;
		page = entry & MttEntry::address_mask;
		++present;
	}
	return present;
}

bool MemoryTable::holds(std::uint32_t key) const
{
	MptEntry entry;
	return memory_ &&
	       (key == reserved_lkey_ || (read_entry(key >> 8, entry) &&
					  MptEntry::status.get(entry.bytes) == mpt_status::valid &&
					  MptEntry::mem_key.get(entry.bytes) == mpt_key(key)));
}

MemoryError MemoryTable::check(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			       MptEntry &region, std::uint64_t &region_address) const
{
	if (!read_entry(use.key >> 8, region) ||
	    MptEntry::status.get(region.bytes) != mpt_status::valid ||
	    MptEntry::mem_key.get(region.bytes) != mpt_key(use.key))
		return MemoryError::invalid_key;

	const bool window = !MptEntry::region.get(region.bytes);
	if (window && !is_remote(use.access))
		return MemoryError::invalid_key; // a window has only an rkey
	// A window of type 2B requires the PD and the QP to match (IBA 10.6.7.2), because the
	// number of a destroyed queue pair may be reused in another domain.
	if (MptEntry::pd.get(region.bytes) != use.pd ||
	    (window && MptEntry::bound_to_qp.get(region.bytes) &&
	     MptEntry::qpn.get(region.bytes) != use.qpn))
		return MemoryError::protection_domain;
	// A fast-registration region may also be closed to all remote accesses.
	if (is_remote(use.access) && MptEntry::fast_register_enable.get(region.bytes) &&
	    !MptEntry::remote_access_enable.get(region.bytes))
		return MemoryError::permission;
	if (!permission(use.access).get(region.bytes))
		return MemoryError::permission;
	if (!within(region, address, length))
		return MemoryError::bounds;

	region_address = address;
	if (window) {
		// The window's entry checks the access, and its region's entry provides the page
		// list.
		const std::uint32_t lkey = MptEntry::lkey.get(region.bytes);
		const std::uint32_t pd = MptEntry::pd.get(region.bytes);
		if (!read_entry(lkey >> 8, region) ||
		    MptEntry::status.get(region.bytes) != mpt_status::valid ||
		    MptEntry::mem_key.get(region.bytes) != mpt_key(lkey) ||
		    !MptEntry::region.get(region.bytes) || MptEntry::pd.get(region.bytes) != pd)
			return MemoryError::invalid_key;
		if (!within(region, address, length))
			return MemoryError::bounds;
	}
	return MemoryError::none;
}

MemoryError MemoryTable::pages(const MptEntry &region, std::uint64_t address, std::uint64_t length,
			       std::vector<BusRange> &out) const
{
	if (MptEntry::physical.get(region.bytes)) {
		out.push_back({address, length});
		return MemoryError::none;
	}
	const unsigned shift = MptEntry::entity_size.get(region.bytes);
	if (shift < kMinPageShift || shift > kMaxPageShift)
		return MemoryError::translation;
	const std::uint64_t page = std::uint64_t{1} << shift;
	const std::uint64_t mtt = MptEntry::mtt_offset.get(region.bytes);
	// The first entry covers the page in which the region starts.
	std::uint64_t offset = address - (MptEntry::start.get(region.bytes) & ~(page - 1));
	const std::size_t first = out.size();
	std::array<std::uint64_t, kMttRun> run;
	while (length) {
		const std::uint64_t wanted =
			((offset & (page - 1)) + (length - 1)) / page + 1; // @length is below 2^63
		const std::size_t got =
			mtt_pages(mtt, offset >> shift,
				  std::span(run).first(std::min<std::uint64_t>(wanted, kMttRun)));
		if (!got) {
			out.resize(first);
			return MemoryError::translation;
		}
		for (const std::uint64_t base : std::span(run).first(got)) {
			const std::uint64_t within_page = offset & (page - 1);
			const std::uint64_t step = std::min(length, page - within_page);
			append(out, first, {(base & ~(page - 1)) + within_page, step});
			offset += step;
			length -= step;
		}
	}
	return MemoryError::none;
}

MemoryError MemoryTable::resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				 std::vector<BusRange> &out) const
{
	if (length == 0)
		return MemoryError::none;
	if (use.key == reserved_lkey_ && !is_remote(use.access)) {
		// These are bus addresses without protection, which only the kernel's own queue
		// pairs may use.
		if (!use.reserved_lkey)
			return MemoryError::invalid_key;
		out.push_back({address, length});
		return MemoryError::none;
	}
	MptEntry region;
	std::uint64_t region_address = 0;
	if (const MemoryError error = check(use, address, length, region, region_address);
	    error != MemoryError::none)
		return error;
	return pages(region, region_address, length, out);
}

MemoryError MemoryTable::translate(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				   std::vector<MemorySegment> &out) const
{
	if (length == 0)
		return MemoryError::none;
	ranges_.clear();
	if (const MemoryError error = resolve(use, address, length, ranges_);
	    error != MemoryError::none)
		return error;
	return to_segments(memory_, use.access, ranges_, out);
}

std::optional<std::uint64_t> MemoryTable::bus_address(const QueueBuffer &buffer,
						      std::uint64_t offset, KeyAccess access) const
{
	if (buffer.by_key) {
		ranges_.clear();
		// Software may have registered its work queues as read-only for the card. A program
		// may also have registered a file that it must not write. Completions must not be
		// written to such memory.
		const KeyUse use{.key = buffer.lkey, .access = access, .pd = buffer.pd};
		if (!memory_ ||
		    resolve(use, buffer.start + offset, 1, ranges_) != MemoryError::none)
			return std::nullopt;
		return ranges_.front().address;
	}
	offset += buffer.page_offset;
	const std::uint64_t page = std::uint64_t{1} << buffer.page_shift;
	std::uint64_t base;
	if (!mtt_pages(buffer.mtt_offset, offset >> buffer.page_shift, std::span(&base, 1)))
		return std::nullopt;
	return (base & ~(page - 1)) + (offset & (page - 1));
}

std::optional<std::uint32_t> MemoryTable::load_record(const RecordPlace &place) const
{
	const auto bus =
		place.in_icm ? icm_.locate(place.address, 8) : std::optional(place.address);
	const auto raw = bus && memory_ ? memory_->load<std::uint32_t>(*bus) : std::nullopt;
	return raw ? std::optional<std::uint32_t>(ib::be32::from_raw(*raw)) : std::nullopt;
}

bool MemoryTable::read(const QueueBuffer &buffer, std::uint64_t offset,
		       std::span<std::byte> data) const
{
	const std::uint64_t page = std::uint64_t{1} << buffer.page_shift;
	while (!data.empty()) {
		const auto bus = bus_address(buffer, offset);
		const std::uint64_t left = page - ((offset + buffer.page_offset) & (page - 1));
		const std::size_t step = std::min<std::uint64_t>(left, data.size());
		if (!bus || !memory_->read(*bus, data.first(step)))
			return false;
		data = data.subspan(step);
		offset += step;
	}
	return true;
}

bool MemoryTable::write(const QueueBuffer &buffer, std::uint64_t offset,
			std::span<const std::byte> data) const
{
	const std::uint64_t page = std::uint64_t{1} << buffer.page_shift;
	while (!data.empty()) {
		const auto bus = bus_address(buffer, offset, KeyAccess::local_write);
		const std::uint64_t left = page - ((offset + buffer.page_offset) & (page - 1));
		const std::size_t step = std::min<std::uint64_t>(left, data.size());
		if (!bus || !memory_->write(*bus, data.first(step)))
			return false;
		data = data.subspan(step);
		offset += step;
	}
	return true;
}

} // namespace weft::mellanox_icm
