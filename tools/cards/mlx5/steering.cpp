// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/steering.hpp"

#include <algorithm>
#include <ranges>

namespace weft::mlx5
{

using hw::mlx5::FlowEntry;
using hw::mlx5::FlowHeaders;
using hw::mlx5::Status;

namespace
{

bool matches(const FlowHeaders &mask, const FlowHeaders &value, const FlowHeaders &headers)
{
	for (std::size_t at = 0; at < sizeof(mask.bytes); ++at)
		if ((value.bytes[at] ^ headers.bytes[at]) & mask.bytes[at])
			return false;
	return true;
}

// The model has entries with exactly one of these actions.
bool is_action(std::uint32_t action)
{
	return action == FlowEntry::allow || action == FlowEntry::drop ||
	       action == FlowEntry::forward;
}

} // namespace

bool FlowTables::may_lead_to(const Table &table, std::uint32_t other) const
{
	const Table *const next = tables_.find(other);
	return next && next->level > table.level;
}

Status FlowTables::create(const Table &table, std::uint32_t &number)
{
	if (table.level > limits::kMostFlowLevel || table.log_size > limits::kLogFlowTableSize)
		return Status::bad_parameter;
	if (table.miss_table && !may_lead_to(table, table.miss_table))
		return Status::bad_resource;
	const auto taken = table_numbers_.take();
	if (!taken)
		return Status::no_resources;
	number = *taken;
	tables_.insert(number, table);
	return Status::ok;
}

// Destroys the groups and entries of the table, too.
Status FlowTables::destroy(std::uint32_t number)
{
	const Table *const table = tables_.find(number);
	if (!table)
		return Status::bad_resource;
	entries_ -= table->entries.size();
	for (const std::uint32_t group : table->groups | std::views::keys)
		group_numbers_.give(group);
	tables_.remove(number);
	table_numbers_.give(number);
	return Status::ok;
}

Status FlowTables::set_miss(std::uint32_t number, std::uint32_t miss_table)
{
	Table *const table = tables_.find(number);
	if (!table || (miss_table && !may_lead_to(*table, miss_table)))
		return Status::bad_resource;
	table->miss_table = miss_table;
	return Status::ok;
}

Status FlowTables::create_group(std::uint32_t number, const Group &group, std::uint32_t &out)
{
	Table *const table = tables_.find(number);
	if (!table)
		return Status::bad_resource;
	if (group.first > group.last || group.last >= std::uint32_t{1} << table->log_size)
		return Status::bad_index;
	const bool overlaps =
		std::ranges::any_of(table->groups | std::views::values, [&](const Group &other) {
			return group.first <= other.last && other.first <= group.last;
		});
	if (overlaps)
		return Status::bad_index;
	const auto taken = group_numbers_.take();
	if (!taken)
		return Status::no_resources;
	out = *taken;
	table->groups.insert_or_assign(out, group);
	return Status::ok;
}

// Fails as long as the group has entries.
Status FlowTables::destroy_group(std::uint32_t number, std::uint32_t group)
{
	Table *const table = tables_.find(number);
	if (!table || !table->groups.contains(group))
		return Status::bad_resource;
	const Group &found = table->groups.at(group);
	const auto entry = table->entries.lower_bound(found.first);
	if (entry != table->entries.end() && entry->first <= found.last)
		return Status::resource_busy;
	table->groups.erase(group);
	group_numbers_.give(group);
	return Status::ok;
}

Status FlowTables::check_action(const Table &table, const Entry &entry) const
{
	if (!is_action(entry.action))
		return Status::bad_parameter;
	if ((entry.action == FlowEntry::forward) != entry.destination.has_value())
		return Status::bad_parameter;
	if (entry.destination && entry.destination->is_table &&
	    !may_lead_to(table, entry.destination->number))
		return Status::bad_resource;
	return Status::ok;
}

Status FlowTables::set_entry(std::uint32_t number, std::uint32_t index, const Entry &entry)
{
	Table *const table = tables_.find(number);
	if (!table || !table->groups.contains(entry.group))
		return Status::bad_resource;
	const Group &group = table->groups.at(entry.group);
	if (index < group.first || index > group.last)
		return Status::bad_index;
	if (table->entries.contains(index))
		return Status::resource_busy;
	if (const Status status = check_action(*table, entry); status != Status::ok)
		return status;
	if (entries_ >= std::size_t{1} << limits::kLogFlowEntries)
		return Status::no_resources;
	table->entries.insert_or_assign(index, entry);
	++entries_;
	return Status::ok;
}

Status FlowTables::modify_entry(std::uint32_t number, std::uint32_t index, std::uint32_t selected,
				const Entry &entry)
{
	Table *const table = tables_.find(number);
	if (!table || !table->entries.contains(index))
		return Status::bad_resource;
	Entry changed = table->entries.at(index);
	if (selected & FlowEntry::select_action)
		changed.action = entry.action;
	if (selected & FlowEntry::select_destinations)
		changed.destination = entry.destination;
	// Only entries that forward have a destination.
	if (changed.action != FlowEntry::forward)
		changed.destination.reset();
	if (const Status status = check_action(*table, changed); status != Status::ok)
		return status;
	table->entries.at(index) = changed;
	return Status::ok;
}

Status FlowTables::delete_entry(std::uint32_t number, std::uint32_t index)
{
	Table *const table = tables_.find(number);
	if (!table || table->entries.erase(index) == 0)
		return Status::bad_resource;
	--entries_;
	return Status::ok;
}

// Each step checks that the next table has a higher level, because the driver may have replaced a
// table. So a packet is compared with each entry of the card at most once.
std::optional<std::uint32_t> FlowTables::steer(std::uint32_t root, const Headers &headers) const
{
	for (const Table *table = tables_.find(root); table;) {
		std::uint32_t next = table->miss_table;
		for (const Entry &entry : table->entries | std::views::values) {
			const auto group = table->groups.find(entry.group);
			if (group == table->groups.end() ||
			    !matches(group->second.mask, entry.value, headers))
				continue;
			if (!entry.destination)
				return std::nullopt;
			if (!entry.destination->is_table)
				return entry.destination->number;
			next = entry.destination->number;
			break;
		}
		if (!may_lead_to(*table, next))
			return std::nullopt;
		table = tables_.find(next);
	}
	return std::nullopt;
}

void FlowTables::reset()
{
	tables_.clear();
	entries_ = 0;
	table_numbers_.reset();
	group_numbers_.reset();
}

} // namespace weft::mlx5
