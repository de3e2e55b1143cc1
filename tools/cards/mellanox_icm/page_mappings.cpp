// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/page_mappings.hpp"

#include "cards/mellanox_icm/icm_map.hpp"
#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::PageMapping;
using hw::mlx4::Status;

namespace
{

// Calls @f(mapping, bus, bytes) for each entry of the mailbox, and stops at the first call that
// fails.
template<typename F>
Status for_each_mapping(std::span<const std::uint8_t> in, F &&f)
{
	constexpr unsigned max_log_pages = 51; // 2^63 bytes
	for (std::size_t at = 0; at < in.size(); at += PageMapping::size) {
		const std::uint8_t *const mapping = in.data() + at;
		const std::uint32_t log_pages = PageMapping::log_pages.get(mapping);
		if (log_pages > max_log_pages)
			return Status::bad_parameter;
		const std::uint64_t size = IcmMap::kPageSize << log_pages;
		const std::uint64_t bus = PageMapping::bus_address.get(mapping);
		if ((bus & (size - 1)) != 0 || bus + (size - 1) < bus)
			return Status::bad_parameter;
		if (const Status status = f(mapping, bus, size); status != Status::ok)
			return status;
	}
	return Status::ok;
}

} // namespace

Status count_pages(std::span<const std::uint8_t> mailbox, std::uint64_t &pages)
{
	std::uint64_t lent = 0;
	const Status status = for_each_mapping(
		mailbox, [&](const std::uint8_t *, std::uint64_t, std::uint64_t size) {
			lent += size / IcmMap::kPageSize;
			return Status::ok;
		});
	if (status == Status::ok)
		pages += lent;
	return status;
}

Status map_icm(std::span<const std::uint8_t> mailbox, IcmMap &icm, MemoryTable &memory)
{
	const GuestMemory *const guest = memory.memory();
	const Status status = for_each_mapping(
		mailbox, [&](const std::uint8_t *mapping, std::uint64_t bus, std::uint64_t size) {
			const std::uint64_t address = PageMapping::virtual_address.get(mapping);
			return address + (size - 1) >= address && guest &&
					       guest->covers(bus, size, Access::write)
				       ? Status::ok
				       : Status::bad_parameter;
		});
	if (status != Status::ok)
		return status;
	return for_each_mapping(
		mailbox, [&](const std::uint8_t *mapping, std::uint64_t bus, std::uint64_t size) {
			const std::uint64_t address = PageMapping::virtual_address.get(mapping);
			if (!icm.map(address, bus, size))
				return Status::exceeds_limit;
			memory.forget_entries(address, size);
			return Status::ok;
		});
}

} // namespace weft::mellanox_icm
