// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the port commands: management datagrams, registers, multicast groups, and the virtual
// port.
#include <algorithm>
#include <cstring>

#include "cards/mlx5/core.hpp"
#include "cards/mlx5/port_registers.hpp"

namespace weft::mlx5
{

using hw::mlx5::AccessRegister;
using hw::mlx5::MadIfc;
using hw::mlx5::McgMember;
using hw::mlx5::Status;
using hw::mlx5::VportContext;
using hw::mlx5::VportTable;

Status Commands::mad_ifc(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t number = MadIfc::port.get(in);
	if (!core_.context.port(number))
		return Status::bad_index;
	ib::Mad mad;
	std::memcpy(&mad, in + MadIfc::mad, sizeof(mad));
	const bool reads_pkeys = number == 1 && mad.header.attr_id == ib::attr_pkey_table &&
				 mad.header.method == static_cast<std::uint8_t>(ib::MadMethod::get);
	const std::uint32_t block = mad.header.attr_mod;
	// The agents answer unknown requests with a MAD status. The command fails only if they
	// refuse the MAD without a response.
	const auto slid = static_cast<ib::Lid>(MadIfc::remote_lid.get(in));
	if (!core_.agents.local_mad(number, mad, slid,
				    command.op_modifier & MadIfc::op_ignore_mkey))
		return Status::bad_packet;
	std::memcpy(command.out.data() + MadIfc::mad, &mad, sizeof(mad));
	if (reads_pkeys)
		core_.subscription.pkeys_read(block & 0xffff);
	return Status::ok;
}

namespace
{

Status set_capabilities(Core &core, std::span<const std::uint8_t> data)
{
	if (data.size() < AccessRegister::pcap_size)
		return Status::bad_input_length;
	CardPort *const port = core.context.port(AccessRegister::pcap_port.get(data.data()));
	if (!port)
		return Status::bad_index;
	std::uint32_t mask = AccessRegister::pcap_mask.get(data.data());
	if (!core.trusted)
		mask &= ~std::uint32_t{ib::port_cap_is_sm};
	if (port->set_driver_capabilities(mask)) {
		core.agents.subnet().capabilities_changed(*port);
		core.transport->port_changed(port->number());
	}
	return Status::ok;
}

Status set_description(Core &core, std::span<const std::uint8_t> data)
{
	if (data.size() < AccessRegister::node_description_size)
		return Status::bad_input_length;
	const auto *const text = reinterpret_cast<const char *>(data.data());
	const std::size_t length = strnlen(text, AccessRegister::node_description_size);
	core.identity.description.assign(text, length);
	core.agents.subnet().description_changed();
	return Status::ok;
}

Status status_of(PortRegister result, Status too_short)
{
	switch (result) {
	case PortRegister::ok:
		return Status::ok;
	case PortRegister::bad_port:
		return Status::bad_index;
	case PortRegister::too_short:
		return too_short;
	case PortRegister::unsupported:
	case PortRegister::bad_value:
		break;
	}
	return Status::bad_parameter;
}

} // namespace

// A node description from a guest that is not trusted is accepted and ignored, as on the other
// cards.
Status Commands::access_register(Command &command)
{
	const std::uint32_t number = AccessRegister::number.get(command.in.data());
	const auto data = command.in.subspan(AccessRegister::data);
	if (command.op_modifier == AccessRegister::op_write) {
		switch (number) {
		case AccessRegister::host_endianness:
			core_.context.big_endian_host = !data.empty() && data[0] & 0x80;
			return Status::ok;
		case AccessRegister::port_capabilities:
			return set_capabilities(core_, data);
		case AccessRegister::node_description:
			return core_.trusted ? set_description(core_, data) : Status::ok;
		default:
			break;
		}
		const PortRegister result = write_port_register(core_, number, data);
		if (result != PortRegister::unsupported)
			return status_of(result, Status::bad_input_length);
	} else if (command.op_modifier == AccessRegister::op_read) {
		const auto out = command.out.subspan(AccessRegister::data);
		std::copy_n(data.begin(),
			    std::min({AccessRegister::port_size, data.size(), out.size()}),
			    out.begin());
		const PortRegister result = read_port_register(core_, number, out);
		if (result != PortRegister::unsupported)
			return data.size() < AccessRegister::port_size
				       ? Status::bad_input_length
				       : status_of(result, Status::bad_output_length);
	}
	core_.unsupported.note(RequestKind::register_access, number);
	return Status::bad_parameter;
}

namespace
{

ib::Gid group_of(const Command &command)
{
	ib::Gid gid;
	std::memcpy(gid.raw, command.in.data() + McgMember::gid, sizeof(gid.raw));
	return gid;
}

} // namespace

Status Commands::attach_to_mcg(Command &command)
{
	const QueuePair *const qp = core_.context.queue_pair(McgMember::qpn.get(command.in.data()));
	if (!qp || qp->service != ServiceType::ud || qp->special >= 0 || qp->is_send_queue)
		return Status::bad_resource;
	return core_.groups.attach(group_of(command), *qp) ? Status::ok : Status::exceeds_limit;
}

Status Commands::detach_from_mcg(Command &command)
{
	return core_.groups.detach(group_of(command), McgMember::qpn.get(command.in.data()))
		       ? Status::ok
		       : Status::bad_resource;
}

// Linux specifies the port only if the card has two.
static const CardPort *virtual_port(const Core &core, const Command &command)
{
	const std::uint32_t number = VportContext::port_in.get(command.in.data());
	return core.context.port(number ? number : 1);
}

Status Commands::query_vport_context(Command &command)
{
	const CardPort *const found = virtual_port(core_, command);
	if (!found)
		return Status::bad_index;
	const CardPort &port = *found;
	const ib::PortInfo &info = port.info();
	std::uint8_t *const out = command.out.data();
	const auto state = static_cast<std::uint32_t>(info.state());
	VportContext::has_smi.set(out, 1);
	VportContext::phys_state.set(out, static_cast<std::uint32_t>(info.phys_state()));
	VportContext::port_state.set(out, state);
	VportContext::vport_state.set(out, state);
	VportContext::system_image_guid.set(out, core_.identity.system_image_guid);
	VportContext::port_guid.set(out, port.guid());
	VportContext::node_guid.set(out, core_.identity.node_guid);
	VportContext::capability_mask.set(out, info.capability_mask);
	VportContext::lid.set(out, port.lid());
	VportContext::lmc.set(out, port.lmc());
	VportContext::subnet_timeout.set(out, info.subnet_timeout());
	VportContext::sm_lid.set(out, info.sm_lid);
	VportContext::sm_sl.set(out, info.sm_sl());
	VportContext::qkey_violations.set(out, info.qkey_violations);
	VportContext::pkey_violations.set(out, info.pkey_violations);
	return Status::ok;
}

// Writes one entry or all entries of a table to the output, by calling @put(index, pointer).
template<typename Put>
static Status table(const Command &command, unsigned entries, std::size_t entry_size, Put &&put)
{
	const std::uint32_t index = VportTable::index.get(command.in.data());
	const bool all = index == VportTable::all;
	if (!all && index >= entries)
		return Status::bad_index;
	const unsigned first = all ? 0 : index;
	const unsigned count = all ? entries : 1;
	if (command.out.size() < VportTable::entries + count * entry_size)
		return Status::bad_output_length;
	for (unsigned i = 0; i < count; ++i)
		put(first + i, command.out.data() + VportTable::entries + i * entry_size);
	return Status::ok;
}

Status Commands::query_vport_gid(Command &command)
{
	const CardPort *const port = virtual_port(core_, command);
	if (!port)
		return Status::bad_index;
	const Status status = table(command, CardPort::kGids, sizeof(ib::Gid),
				    [&](unsigned index, std::uint8_t *out) {
					    const ib::Gid gid = port->gid(index);
					    std::memcpy(out, gid.raw, sizeof(gid.raw));
				    });
	if (status == Status::ok)
		VportTable::gid_count.set(command.out.data(), CardPort::kGids);
	return status;
}

Status Commands::query_vport_pkey(Command &command)
{
	const CardPort *const port = virtual_port(core_, command);
	if (!port)
		return Status::bad_index;
	return table(command, 1u << limits::kLogPkeys, sizeof(std::uint32_t),
		     [&](unsigned index, std::uint8_t *out) {
			     hw::mlx5::store_be32(out, 0, port->pkey(index));
		     });
}

} // namespace weft::mlx5
