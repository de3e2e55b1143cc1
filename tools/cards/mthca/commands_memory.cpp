// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the memory commands: mapping of guest pages for the card, and memory keys.
#include <algorithm>

#include <hw/mthca/contexts.hpp>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

using hw::mthca::Status;
namespace mpt_status = hw::mellanox_icm::mpt_status;
using FamilyMpt = hw::mlx4::MptEntry;
using OwnMpt = hw::mthca::MptEntry;

namespace
{

// Converts an entry to the format in which the card stores it. A card may choose the format of its
// table, and this one uses the format of the newer cards. Rights, key, PD, start and length have
// the same layout.
FamilyMpt kept(const OwnMpt &given)
{
	FamilyMpt entry{};
	std::copy_n(given.bytes, FamilyMpt::lkey.offset, entry.bytes);
	FamilyMpt::status.set(entry.bytes, mpt_status::valid);
	FamilyMpt::qpn.set(entry.bytes, 0);
	FamilyMpt::bound_to_qp.set(entry.bytes, 0);
	FamilyMpt::entity_size.set(entry.bytes, 12 + OwnMpt::log_page_size.get(given.bytes));
	FamilyMpt::length64.set(entry.bytes, OwnMpt::length.get(given.bytes) == OwnMpt::whole);
	FamilyMpt::mtt_offset.set(entry.bytes, OwnMpt::mtt_address.get(given.bytes));
	// Windows and fast registration do not exist on this card; these bits would enable them.
	FamilyMpt::bind_enable.set(entry.bytes, 0);
	FamilyMpt::fast_register_enable.set(entry.bytes, 0);
	return entry;
}

OwnMpt shown(const FamilyMpt &entry)
{
	OwnMpt out{};
	std::copy_n(entry.bytes, FamilyMpt::lkey.offset, out.bytes);
	OwnMpt::log_page_size.set(out.bytes, FamilyMpt::entity_size.get(entry.bytes) - 12);
	OwnMpt::mtt_address.set(out.bytes, FamilyMpt::mtt_offset.get(entry.bytes));
	return out;
}

// Returns true if the range contains only pages of doorbell records. No key depends on those, and
// programs map and unmap them often.
bool holds_records_alone(const Core &core, std::uint64_t address, std::uint64_t size)
{
	const std::uint64_t records = std::uint64_t{limits::kUarPages}
				      << core.context.log_uarc_size;
	const std::uint64_t offset = address - core.context.uarc_base;
	return core.bring_up.stage() == mellanox_icm::Stage::initialised && offset <= records &&
	       size <= records - offset;
}

} // namespace

Status Commands::unmap_icm(Command &command)
{
	// Unmapping pages that are not mapped is not an error, because Linux always unmaps 64
	// pages.
	const std::uint64_t address = command.in_param & ~(IcmMap::kPageSize - 1);
	const std::uint64_t size = std::uint64_t{command.in_modifier} * IcmMap::kPageSize;
	const bool unmapped = core_.icm.unmap(address, size);
	if (!holds_records_alone(core_, address, size))
		core_.transport->keys_changed();
	return unmapped ? Status::ok : Status::exceeds_limit;
}

Status Commands::sw2hw_mpt(Command &command)
{
	const std::uint32_t index = command.in_modifier & 0xffffff;
	const std::uint32_t slot = core_.memory.slot(index);
	if (slot < 1u << limits::kLogReservedMpts)
		return Status::bad_resource;
	OwnMpt given;
	std::copy(command.in.begin(), command.in.end(), given.bytes);
	// The key in the entry must have the entry's index.
	if (core_.memory.slot(OwnMpt::mem_key.get(given.bytes)) != slot ||
	    !FamilyMpt::region.get(given.bytes))
		return Status::bad_parameter;
	return core_.memory.write_entry(index, kept(given)) ? Status::ok : Status::bad_parameter;
}

Status Commands::hw2sw_mpt(Command &command)
{
	FamilyMpt entry;
	if (core_.bring_up.stage() != mellanox_icm::Stage::initialised ||
	    !core_.memory.read_entry(command.in_modifier, entry))
		return Status::ok; // there is no table entry
	FamilyMpt::status.set(entry.bytes, mpt_status::software);
	core_.memory.write_entry(command.in_modifier, entry);
	core_.transport->key_gone(command.in_modifier);
	if (!command.out.empty())
		std::ranges::copy(shown(entry).bytes, command.out.begin());
	return Status::ok;
}

} // namespace weft::mthca
