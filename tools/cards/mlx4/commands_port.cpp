// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for ports, management datagrams and multicast groups.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "cards/mlx4/core.hpp"
#include "cards/mlx4/port_events.hpp"

namespace weft::mlx4
{

using hw::mlx4::QueryPort;
using hw::mlx4::SetPort;
using hw::mlx4::Status;

CardPort *Commands::port(std::uint32_t number) const
{
	return core_.context.port(number);
}

Status Commands::query_port(Command &command)
{
	const CardPort *const chosen = port(command.in_modifier);
	if (!chosen)
		return Status::bad_index;
	std::uint8_t *const out = command.out.data();
	QueryPort::link_up.set(out, chosen->info().phys_state() == ib::PhysState::link_up);
	QueryPort::infiniband_supported.set(out, 1);
	QueryPort::max_mtu.set(out, static_cast<std::uint32_t>(CardPort::kMaxMtu));
	QueryPort::link_speed.set(out, chosen->info().speed_supported());
	QueryPort::link_width.set(out, chosen->info().link_width_supported);
	QueryPort::log_max_gids.set(out, std::bit_width(CardPort::kGids - 1));
	QueryPort::log_max_pkeys.set(out, std::bit_width(CardPort::kPkeys - 1));
	QueryPort::log_max_vlans.set(out, 7);
	QueryPort::log_max_macs.set(out, 7);
	QueryPort::max_vls.set(out, CardPort::kVlCap);
	return Status::ok;
}

Status Commands::init_port(Command &command)
{
	CardPort *const chosen = port(command.in_modifier);
	if (!chosen)
		return Status::bad_index;
	core_.open_port(*chosen);
	return Status::ok;
}

Status Commands::close_port(Command &command)
{
	CardPort *const chosen = port(command.in_modifier);
	if (!chosen)
		return Status::bad_index;
	core_.close_port(*chosen);
	return Status::ok;
}

Status Commands::set_port(Command &command)
{
	if (command.op_modifier != 0) // Ethernet, beacon
		return Status::bad_opcode;
	CardPort *const chosen = port(command.in_modifier);
	if (!chosen)
		return Status::bad_index;
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t mtu = SetPort::mtu.get(in);
	const std::uint32_t vls = SetPort::vls.get(in);
	const bool set_mtu = SetPort::mtu_valid.get(in);
	const bool set_vls = SetPort::vl_valid.get(in);
	if (set_mtu && ib::mtu_bytes(static_cast<ib::Mtu>(mtu)) == 0)
		return Status::bad_parameter;
	// Valid numbers are 1, 2, 4 and 8. If a value is refused, drivers try smaller ones.
	if (set_vls && (!std::has_single_bit(vls) || vls > ib::vl_count(CardPort::kVlCap)))
		return Status::bad_size;
	// Partition membership and trust are bound to GUIDs, so an untrusted guest must not change
	// them.
	if (!core_.trusted && (SetPort::system_image_guid_valid.get(in) ||
			       SetPort::node_guid_valid.get(in) || SetPort::guid0_valid.get(in)))
		return Status::bad_parameter;

	ib::PortInfo &info = chosen->info();
	if (set_mtu) {
		const auto cap = std::min(static_cast<ib::Mtu>(mtu), CardPort::kMaxMtu);
		info.set_mtu_cap(cap);
		info.set_neighbor_mtu(std::min(info.neighbor_mtu(), cap));
	}
	if (set_vls)
		info.set_vl_cap(static_cast<unsigned>(std::bit_width(vls)));
	if (SetPort::reset_qkey_violations.get(in))
		info.qkey_violations = std::uint16_t{0};
	if (SetPort::system_image_guid_valid.get(in))
		core_.identity.system_image_guid = SetPort::system_image_guid.get(in);
	if (SetPort::node_guid_valid.get(in))
		core_.identity.node_guid = SetPort::node_guid.get(in);
	if (SetPort::guid0_valid.get(in))
		chosen->managed().guids[0] = SetPort::guid0.get(in);
	// A SET_PORT always sets the capability mask.
	std::uint32_t capabilities = SetPort::capability_mask.get(in);
	if (!core_.trusted)
		capabilities &= ~std::uint32_t{ib::port_cap_is_sm};
	if (chosen->set_driver_capabilities(capabilities))
		core_.agents.subnet().capabilities_changed(*chosen);
	core_.transport->port_changed(chosen->number());
	return Status::ok;
}

Status Commands::sense_port(Command &command)
{
	constexpr std::uint64_t infiniband = 1;
	if (!port(command.in_modifier))
		return Status::bad_index;
	command.out_param = infiniband;
	return Status::ok;
}

// A node description from an untrusted guest is accepted and ignored, because administrators
// identify nodes by it.
Status Commands::set_node(Command &command)
{
	if (!core_.trusted)
		return Status::ok;
	const auto *const text = reinterpret_cast<const char *>(command.in.data());
	std::string description(text, strnlen(text, command.in.size()));
	if (core_.identity.description != description) {
		core_.identity.description = std::move(description);
		core_.agents.subnet().description_changed();
	}
	return Status::ok;
}

Status Commands::mgid_hash(Command &command)
{
	if (command.op_modifier != 0) // Ethernet
		return Status::bad_opcode;
	ib::Gid gid;
	std::memcpy(gid.raw, command.in.data(), sizeof(gid.raw));
	command.out_param = core_.multicast.hash(gid);
	return Status::ok;
}

Status Commands::write_mcg(Command &command)
{
	if (command.op_modifier != 0)
		return Status::bad_opcode;
	if (!core_.multicast.has(command.in_modifier))
		return Status::bad_index;
	return core_.multicast.write(command.in_modifier, command.in) ? Status::ok
								      : Status::exceeds_limit;
}

} // namespace weft::mlx4
