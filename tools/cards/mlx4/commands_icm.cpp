// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the memory commands: mapping of guest pages for the card, memory keys, and page lists.
#include <algorithm>

#include "cards/mlx4/core.hpp"

namespace weft::mlx4
{

using hw::mlx4::MptEntry;
using hw::mlx4::Status;
using hw::mlx4::WriteMttHeader;
namespace mpt_status = hw::mlx4::mpt_status;

Status Commands::unmap_icm(Command &command)
{
	// Unmapping pages that are not mapped is not an error, because drivers round up.
	const bool unmapped =
		core_.icm.unmap(command.in_param & ~(IcmMap::kPageSize - 1),
				std::uint64_t{command.in_modifier} * IcmMap::kPageSize);
	core_.transport->keys_changed();
	return unmapped ? Status::ok : Status::exceeds_limit;
}

Status Commands::sw2hw_mpt(Command &command)
{
	const std::uint32_t index = command.in_modifier & 0xffffff;
	const std::uint32_t slots = std::uint32_t{1}
				    << hw::mlx4::InitHca::log_dmpts.get(core_.init_hca.bytes);
	const std::uint32_t slot = index & (slots - 1);
	if (slot < 1u << limits::kLogReservedMpts)
		return Status::bad_resource;
	MptEntry entry;
	std::copy(command.in.begin(), command.in.end(), entry.bytes);
	// The key in the entry must have the entry's index.
	if ((MptEntry::mem_key.get(entry.bytes) & (slots - 1)) != slot)
		return Status::bad_parameter;
	const bool free = MptEntry::status.get(entry.bytes) == mpt_status::free;
	MptEntry::status.set(entry.bytes, free ? mpt_status::free : mpt_status::valid);
	MptEntry::window_count.set(entry.bytes, 0);
	return core_.memory.write_entry(index, entry) ? Status::ok : Status::icm_error;
}

Status Commands::hw2sw_mpt(Command &command)
{
	MptEntry entry;
	if (core_.bring_up.stage() != mellanox_icm::Stage::initialised ||
	    !core_.memory.read_entry(command.in_modifier, entry))
		return Status::ok; // there is no table entry
	if (MptEntry::region.get(entry.bytes) && MptEntry::window_count.get(entry.bytes) &&
	    MptEntry::status.get(entry.bytes) != mpt_status::software)
		return Status::region_bound;
	if (!MptEntry::region.get(entry.bytes) &&
	    MptEntry::status.get(entry.bytes) == mpt_status::valid)
		core_.memory.release_window(entry);
	MptEntry::status.set(entry.bytes, mpt_status::software);
	core_.memory.write_entry(command.in_modifier, entry);
	core_.transport->key_gone(command.in_modifier);
	if (!command.out.empty())
		std::copy(std::begin(entry.bytes), std::end(entry.bytes), command.out.begin());
	return Status::ok;
}

Status Commands::query_mpt(Command &command)
{
	MptEntry entry;
	if (!core_.memory.read_entry(command.in_modifier, entry))
		return Status::icm_error;
	std::copy(std::begin(entry.bytes), std::end(entry.bytes), command.out.begin());
	return Status::ok;
}

Status Commands::write_mtt(Command &command)
{
	const auto entries = std::as_bytes(command.in).subspan(WriteMttHeader::size);
	return core_.memory.write_mtts(WriteMttHeader::offset.get(command.in.data()), entries)
		       ? Status::ok
		       : Status::icm_error;
}

} // namespace weft::mlx4
