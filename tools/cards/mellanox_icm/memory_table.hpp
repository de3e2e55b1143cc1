// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory keys and page lists: translate a key and a virtual address, or an offset in a queue's
// buffer, to guest memory. Entries are read from the guest's own tables at each use, because
// drivers write them there without notifying the card; so no result is kept beyond a call.
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

// QueueBuffer - the memory of a queue: pages named by a run of MTT entries, or what a memory key
// stands for.
struct QueueBuffer {
	std::uint64_t mtt_offset = 0; // bytes from the start of the MTT
	std::uint8_t page_shift = 12;
	std::uint32_t page_offset = 0; // of the first byte, in the first page

	bool by_key = false;
	std::uint32_t lkey = 0;
	std::uint32_t pd = 0;
	std::uint64_t start = 0; // address of the first byte, as the key sees it

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

// RecordPlace - where a doorbell record lies: on the bus, or in ICM.
struct RecordPlace {
	std::uint64_t address = 0;
	bool in_icm = false;
};

using namespace hca;

class MemoryTable final : public Memory
{
public:
	// Location of the tables, from INIT_HCA.
	struct Layout {
		std::uint64_t dmpt_base = 0;
		std::uint64_t mtt_base = 0;
		std::uint8_t log_dmpts = 0;
	};

	MemoryTable(const IcmMap &icm, std::uint32_t reserved_lkey);
	// @layout.dmpt_base is a multiple of the size of an entry, and the table does not wrap
	// around. Its pages hold no key until one is written there.
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
	// Entries of a fast registration's page list: a page of them. (Drivers offer 511.)
	static constexpr unsigned kMaxFastRegisterPages = 512;

	// A queue's own memory. False if some of it cannot be reached; a write then may have been
	// done in part.
	bool read(const QueueBuffer &buffer, std::uint64_t offset, std::span<std::byte> data) const;
	bool write(const QueueBuffer &buffer, std::uint64_t offset,
		   std::span<const std::byte> data) const;
	// Returns the bus address of one byte of a queue. A naturally aligned object that is not
	// larger than a page is contiguous there. Nothing if the queue's key, if it has one, does
	// not permit the access.
	std::optional<std::uint64_t> bus_address(const QueueBuffer &buffer, std::uint64_t offset,
						 KeyAccess access = KeyAccess::local_read) const;

	// Reads a doorbell record; nothing if it is out of reach.
	std::optional<std::uint32_t> load_record(const RecordPlace &place) const;

	// Table entries, for the commands. The slot is the key's index cut to the table's size.
	bool read_entry(std::uint32_t index, hw::mlx4::MptEntry &entry) const;
	bool write_entry(std::uint32_t index, const hw::mlx4::MptEntry &entry);
	// Other pages are mapped at [@icm_address, + @size): whatever lies in them is no key.
	void forget_entries(std::uint64_t icm_address, std::uint64_t size);
	bool write_mtts(std::uint64_t offset, std::span<const std::byte> entries);
	// Unbinds @window (not yet written back) from its region, whose count goes down.
	void release_window(hw::mlx4::MptEntry &window);

private:
	// The addresses of the pages from @number on that a run of MTT entries names, as many as
	// are to be had at once: the first so many of @pages. None if the first is missing.
	std::size_t mtt_pages(std::uint64_t mtt_offset, std::uint64_t number,
			      std::span<std::uint64_t> pages) const;
	MemoryError check(const KeyUse &use, std::uint64_t address, std::uint64_t length,
			  hw::mlx4::MptEntry &region, std::uint64_t &region_address) const;
	MemoryError pages(const hw::mlx4::MptEntry &region, std::uint64_t address,
			  std::uint64_t length, std::vector<BusRange> &out) const;

	// Returns the address of the entry of a key's index; nothing if it is out of reach.
	std::optional<std::uint64_t> locate_entry(std::uint32_t index) const;

	const IcmMap &icm_;
	const std::uint32_t reserved_lkey_;
	Layout layout_;
	// A bit for each page of the table: whether the card has made it its own. That is done at
	// the first use of an entry there, so that no command has to write a whole table.
	mutable std::vector<bool> initialised_;
	// Scratch of translate(), kept to reuse its memory.
	mutable std::vector<BusRange> ranges_;
};

} // namespace weft::mellanox_icm
