// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands of enhanced IPoIB for flow tables.
#include <algorithm>
#include <cstring>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::FlowEntry;
using hw::mlx5::FlowGroup;
using hw::mlx5::FlowHeaders;
using hw::mlx5::FlowTableContext;
using hw::mlx5::FlowTableRoot;
using hw::mlx5::Status;
namespace flow = hw::mlx5::flow;

namespace
{

// The model has only tables for packets that this PCI function receives.
bool is_ours(const Command &command)
{
	const std::uint8_t *const in = command.in.data();
	return flow::table_type.get(in) == flow::receive && !flow::other_vport.get(in);
}

std::uint32_t table_of(const Command &command)
{
	return flow::table.get(command.in.data());
}

// Reads the destination of packets that match no entry. Returns false if the model does not have
// that action.
bool decode_miss(const std::uint8_t *context, std::uint32_t &table)
{
	const std::uint32_t action = FlowTableContext::miss_action.get(context);
	const std::uint32_t number = FlowTableContext::miss_table.get(context);
	if (action > FlowTableContext::miss_forward ||
	    (action == FlowTableContext::miss_forward && number == 0))
		return false;
	table = action == FlowTableContext::miss_forward ? number : 0;
	return true;
}

// The fields of the outer headers that exist in packets of IP over InfiniBand.
FlowHeaders known_fields()
{
	FlowHeaders known{};
	std::uint8_t *const out = known.bytes;
	for (const hw::mlx5::Field &field :
	     {FlowHeaders::ethertype, FlowHeaders::protocol, FlowHeaders::dscp, FlowHeaders::ecn,
	      FlowHeaders::fragment, FlowHeaders::ip_version, FlowHeaders::tcp_flags,
	      FlowHeaders::tcp_source, FlowHeaders::tcp_destination, FlowHeaders::ip_header_words,
	      FlowHeaders::hop_limit, FlowHeaders::udp_source, FlowHeaders::udp_destination})
		field.set(out, 0xffffffff);
	std::fill_n(out + FlowHeaders::source, 2 * FlowHeaders::address_size, std::uint8_t{0xff});
	return known;
}

// Reads the mask of a group. Returns false if it has fields that the model does not support.
bool decode_mask(const std::uint8_t *in, FlowHeaders &mask)
{
	const FlowHeaders known = known_fields();
	const std::uint8_t *const criteria = in + FlowGroup::mask;
	const std::uint32_t enabled = FlowGroup::criteria.get(in);
	if (enabled & ~FlowGroup::outer_headers || FlowGroup::definer.get(in))
		return false;
	mask = {};
	if (!enabled)
		return true;
	std::memcpy(mask.bytes, criteria, sizeof(mask.bytes));
	for (std::size_t at = 0; at < sizeof(mask.bytes); ++at)
		if (mask.bytes[at] & ~known.bytes[at])
			return false;
	return std::all_of(criteria + sizeof(mask.bytes), criteria + FlowGroup::mask_size,
			   [](std::uint8_t byte) { return byte == 0; });
}

Status decode_entry(const Command &command, const RawQueues &raw, FlowTables::Entry &entry)
{
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t destinations = FlowEntry::destinations.get(in);
	entry.group = FlowEntry::group.get(in);
	entry.action = FlowEntry::action.get(in);
	std::memcpy(entry.value.bytes, in + FlowEntry::value, sizeof(entry.value.bytes));
	if (FlowEntry::extended.get(in) || FlowEntry::counters.get(in) || destinations > 1)
		return Status::bad_parameter;
	if (destinations == 0)
		return Status::ok;
	constexpr std::size_t size = 8;
	if (command.in.size() < FlowEntry::list + size)
		return Status::bad_input_length;
	const std::uint8_t *const place = in + FlowEntry::list;
	const std::uint32_t kind = FlowEntry::destination_kind.get(place);
	const FlowTables::Destination to{.is_table = kind == FlowEntry::to_table,
					 .number = FlowEntry::destination.get(place)};
	if (kind != FlowEntry::to_table && kind != FlowEntry::to_tir)
		return Status::bad_parameter;
	if (!to.is_table && !raw.receive_interfaces.find(to.number))
		return Status::bad_resource;
	entry.destination = to;
	return Status::ok;
}

} // namespace

Status Commands::create_flow_table(Command &command)
{
	const std::uint8_t *const context = command.in.data() + FlowTableContext::offset;
	FlowTables::Table table;
	table.level = static_cast<std::uint8_t>(FlowTableContext::level.get(context));
	table.log_size = static_cast<std::uint8_t>(FlowTableContext::log_size.get(context));
	if (!is_ours(command) || command.op_modifier || FlowTableContext::reformat.get(context) ||
	    FlowTableContext::software_owner.get(context) ||
	    FlowTableContext::termination.get(context) || !decode_miss(context, table.miss_table))
		return Status::bad_parameter;
	std::uint32_t number = 0;
	const Status status = core_.flows.create(table, number);
	if (status == Status::ok)
		hw::mlx5::object_number.set(command.out.data(), number);
	return status;
}

Status Commands::modify_flow_table(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	std::uint32_t miss = 0;
	if (!is_ours(command) ||
	    FlowTableContext::selected.get(in) != FlowTableContext::select_miss ||
	    !decode_miss(in + FlowTableContext::offset, miss))
		return Status::bad_parameter;
	return core_.flows.set_miss(table_of(command), miss);
}

Status Commands::destroy_flow_table(Command &command)
{
	return is_ours(command) ? core_.flows.destroy(table_of(command)) : Status::bad_parameter;
}

Status Commands::set_flow_table_root(Command &command)
{
	const bool connect = command.op_modifier == FlowTableRoot::op_connect;
	if (!is_ours(command) || command.op_modifier > FlowTableRoot::op_disconnect)
		return Status::bad_parameter;
	QueuePair *const qp =
		core_.context.queue_pair(FlowTableRoot::underlay_qpn.get(command.in.data()));
	if (!qp || !qp->steered || (connect && !core_.flows.contains(table_of(command))))
		return Status::bad_resource;
	qp->root_table = connect ? table_of(command) : 0;
	return Status::ok;
}

Status Commands::create_flow_group(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	FlowTables::Group group;
	group.first = FlowGroup::first.get(in);
	group.last = FlowGroup::last.get(in);
	if (!is_ours(command) || !decode_mask(in, group.mask))
		return Status::bad_parameter;
	std::uint32_t number = 0;
	const Status status = core_.flows.create_group(table_of(command), group, number);
	if (status == Status::ok)
		hw::mlx5::object_number.set(command.out.data(), number);
	return status;
}

Status Commands::destroy_flow_group(Command &command)
{
	if (!is_ours(command))
		return Status::bad_parameter;
	return core_.flows.destroy_group(table_of(command),
					 FlowGroup::number.get(command.in.data()));
}

Status Commands::set_flow_table_entry(Command &command)
{
	constexpr std::uint32_t possible =
		FlowEntry::select_action | FlowEntry::select_tag | FlowEntry::select_destinations;
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t selected = FlowEntry::selected.get(in);
	if (!is_ours(command) || command.op_modifier > FlowEntry::op_modify ||
	    (command.op_modifier == FlowEntry::op_modify && selected & ~possible))
		return Status::bad_parameter;
	FlowTables::Entry entry;
	if (const Status status = decode_entry(command, core_.raw, entry); status != Status::ok)
		return status;
	const std::uint32_t index = flow::index.get(in);
	return command.op_modifier == FlowEntry::op_set
		       ? core_.flows.set_entry(table_of(command), index, entry)
		       : core_.flows.modify_entry(table_of(command), index, selected, entry);
}

Status Commands::delete_flow_table_entry(Command &command)
{
	if (!is_ours(command))
		return Status::bad_parameter;
	return core_.flows.delete_entry(table_of(command), flow::index.get(command.in.data()));
}

} // namespace weft::mlx5
