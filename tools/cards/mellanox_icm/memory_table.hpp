// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements memory keys and page lists: translates a key and a virtual address, or an offset in a
// queue's buffer, to guest memory. Entries are read from the guest's own tables at each use,
// because drivers write them there without notifying the card. Results are therefore valid only
// during a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hw/mlx4/contexts.hpp>

#include "cards/hca/memory.hpp"

namespace weft::mellanox_icm
{

class IcmMap;

// QueueBuffer - the memory of a queue: pages listed by MTT entries, or the memory of a key.
struct QueueBuffer {
	std::uint64_t mtt_offset = 0; // from the start of the MTT, in bytes
	std::uint8_t page_shift = 12;
	std::uint32_t page_offset = 0; // offset of the first byte in the first page

	bool by_key = false;
	std::uint32_t lkey = 0;
	std::uint32_t pd = 0;
	std::uint64_t start = 0; // address of the first byte in the key's address space

	static QueueBuffer keyed(std::uint32_t lkey, std::uint32_t pd, std::uint64_t start)
	{
		QueueBuffer buffer;
		buffer.page_offset = static_cast<std::uint32_t>(start & 0xfff);
		buffer.by_key = true;
		buffer.lkey = lkey;
		buffer.pd = pd;
		buffer.start = start;
		return buffer;
	}
};

// RecordPlace - the location of a doorbell record: on the bus, or in ICM.
struct RecordPlace {
	std::uint64_t address = 0;
	bool in_icm = false;
};

using namespace hca;

class MemoryTable final : public Memory
{
public:
	// Locations of the tables, set by INIT_HCA.
	struct Layout {
		std::uint64_t dmpt_base = 0;
		std::uint64_t mtt_base = 0;
		std::uint8_t log_dmpts = 0;
	};

	MemoryTable(const IcmMap &icm, std::uint32_t reserved_lkey);
	// @layout.dmpt_base must be a multiple of an entry's size, and the table must not wrap
	// around. Previous contents of the table's pages are not accepted as keys.
	void set_layout(const Layout &layout);

	MemoryError resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			    std::vector<BusRange> &out) const override;
	MemoryError translate(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			      std::vector<MemorySegment> &out) const override;
	bool holds(std::uint32_t key) const override;
	std::uint32_t slot(std::uint32_t index) const override
	{
		return index &
		       static_cast<std::uint32_t>((std::uint64_t{1} << layout_.log_dmpts) - 1);
	}

	MemoryError fast_register(const FastRegister &request, std::uint32_t pd) override;
	MemoryError invalidate(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
			       bool remote) override;
	MemoryError bind_window(const BindWindow &request, std::uint32_t pd,
				std::uint32_t qpn) override;
	// Maximum length of the page list of a fast registration: one page. (Drivers report 511.)
	static constexpr unsigned kMaxFastRegisterPages = 512;

	// Access the memory of a queue. Return false if a part of it is not accessible. A write may
	// then have been partly done.
	bool read(const QueueBuffer &buffer, std::uint64_t offset, std::span<std::byte> data) const;
	bool write(const QueueBuffer &buffer, std::uint64_t offset,
		   std::span<const std::byte> data) const;
	// Returns the bus address of one byte of a queue. A naturally aligned object that is not
	// larger than a page is contiguous there. Returns nothing if the queue has a key that does
	// not permit the access.
	std::optional<std::uint64_t> bus_address(const QueueBuffer &buffer, std::uint64_t offset,
						 KeyAccess access = KeyAccess::local_read) const;

	// Reads a doorbell record. Returns nothing if it is not accessible.
	std::optional<std::uint32_t> load_record(const RecordPlace &place) const;

	// Access table entries, for commands. The slot is the key's index modulo the table's size.
	bool read_entry(std::uint32_t index, hw::mlx4::MptEntry &entry) const;
	bool write_entry(std::uint32_t index, const hw::mlx4::MptEntry &entry);
	// Must be called when pages were replaced in [@icm_address, @icm_address + @size). Their
	// contents are not accepted as keys any more.
	void forget_entries(std::uint64_t icm_address, std::uint64_t size);
	bool write_mtts(std::uint64_t offset, std::span<const std::byte> entries);
	// Unbinds @window, which the caller writes back, from its region, and decrements the
	// region's count.
	void release_window(hw::mlx4::MptEntry &window);

private:
	// Gets page addresses from a list of MTT entries, starting at page @number, as many as one
	// access permits. Returns the number of @pages that were set, which is 0 if the first one
	// is not accessible.
	std::size_t mtt_pages(std::uint64_t mtt_offset, std::uint64_t number,
			      std::span<std::uint64_t> pages) const;
	MemoryError check(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			  hw::mlx4::MptEntry &region, std::uint64_t &region_address) const;
	MemoryError pages(const hw::mlx4::MptEntry &region, std::uint64_t address,
			  std::uint64_t length, std::vector<BusRange> &out) const;

	// Returns the address of the entry of a key's index, or nothing if it is not accessible.
	std::optional<std::uint64_t> locate_entry(std::uint32_t index) const;

	const IcmMap &icm_;
	const std::uint32_t reserved_lkey_;
	Layout layout_;
	// A bit for each page of the table, which is set if its entries were initialised. This
	// happens at the first access to an entry, so that no command has to write a whole table.
	mutable std::vector<bool> initialised_;
	// Used by translate(). A member, so that its memory is reused.
	mutable std::vector<BusRange> ranges_;
};

} // namespace weft::mellanox_icm
