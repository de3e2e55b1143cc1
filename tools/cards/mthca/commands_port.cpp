// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for ports, management datagrams and multicast groups.
#include <algorithm>
#include <bit>
#include <cstring>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

using hw::mthca::InitIb;
using hw::mthca::SetIb;
using hw::mthca::Status;

// The lengths of tables are those of QUERY_DEV_LIM, whatever the driver requests, because another
// driver may later request greater lengths.
Status Commands::init_ib(Command &command)
{
	CardPort *const port = core_.context.port(command.in_modifier);
	if (!port)
		return Status::bad_index;
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t mtu = InitIb::mtu.get(in);
	const std::uint32_t vls = InitIb::vls.get(in);
	if (ib::mtu_bytes(static_cast<ib::Mtu>(mtu)) == 0 || !std::has_single_bit(vls) ||
	    vls > ib::vl_count(CardPort::kVlCap))
		return Status::bad_parameter;
	// Partition membership and trust are bound to GUIDs, so an untrusted guest must not change
	// them.
	if (!core_.trusted && (InitIb::system_image_guid_valid.get(in) ||
			       InitIb::node_guid_valid.get(in) || InitIb::guid0_valid.get(in)))
		return Status::bad_parameter;
	ib::PortInfo &info = port->info();
	const auto cap = std::min(static_cast<ib::Mtu>(mtu), ib::Mtu::mtu_2048);
	info.set_mtu_cap(cap);
	info.set_neighbor_mtu(std::min(info.neighbor_mtu(), cap));
	info.set_vl_cap(static_cast<unsigned>(std::bit_width(vls)));
	if (InitIb::system_image_guid_valid.get(in))
		core_.identity.system_image_guid = InitIb::system_image_guid.get(in);
	if (InitIb::node_guid_valid.get(in))
		core_.identity.node_guid = InitIb::node_guid.get(in);
	if (InitIb::guid0_valid.get(in))
		port->managed().guids[0] = InitIb::guid0.get(in);
	core_.open_port(*port);
	return Status::ok;
}

Status Commands::close_ib(Command &command)
{
	CardPort *const port = core_.context.port(command.in_modifier);
	if (!port)
		return Status::bad_index;
	core_.close_port(*port);
	return Status::ok;
}

Status Commands::set_ib(Command &command)
{
	CardPort *const port = core_.context.port(command.in_modifier);
	if (!port)
		return Status::bad_index;
	const std::uint8_t *const in = command.in.data();
	if (!core_.trusted && SetIb::system_image_guid_valid.get(in))
		return Status::bad_parameter;
	ib::PortInfo &info = port->info();
	if (SetIb::reset_qkey_violations.get(in))
		info.qkey_violations = std::uint16_t{0};
	if (SetIb::system_image_guid_valid.get(in))
		core_.identity.system_image_guid = SetIb::system_image_guid.get(in);
	std::uint32_t capabilities = SetIb::capability_mask.get(in);
	if (!core_.trusted)
		capabilities &= ~std::uint32_t{ib::port_cap_is_sm};
	if (port->set_driver_capabilities(capabilities))
		core_.agents.subnet().capabilities_changed(*port);
	core_.transport->port_changed(port->number());
	return Status::ok;
}

Status Commands::mgid_hash(Command &command)
{
	ib::Gid gid;
	std::memcpy(gid.raw, command.in.data(), sizeof(gid.raw));
	command.out_param = core_.multicast.hash(gid);
	return Status::ok;
}

Status Commands::write_mgm(Command &command)
{
	if (!core_.multicast.has(command.in_modifier))
		return Status::bad_index;
	return core_.multicast.write(command.in_modifier, command.in) ? Status::ok
								      : Status::exceeds_limit;
}

} // namespace weft::mthca
