// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port_commands.hpp"

namespace mlx4
{

kern::Result<> PortCommands::prepare(u32 port, const PortCapabilities &capabilities)
{
	ib::Smp smp;
	KERN_TRY(get_attribute(commands_, port, ib::attr_port_info, port, smp));
	const u32 mask = ib::smp_attribute<ib::PortInfo>(smp).capability_mask;

	// Set the highest number of virtual lanes that the card supports; it rejects a higher
	// number with the status bad_size.
	auto mailbox = KERN_TRY(commands_.mailbox());
	for (u32 vls = 8; vls >= 1; vls /= 2) {
		u8 *in = mailbox.bytes();
		wire::SetPort::mtu_valid.set(in, 1);
		wire::SetPort::vl_valid.set(in, 1);
		wire::SetPort::mtu.set(in, capabilities.max_mtu);
		wire::SetPort::vls.set(in, vls);
		wire::SetPort::capability_mask.set(in, mask);
		const auto tried = commands_.execute_in(
			{.opcode = wire::Opcode::set_port, .in_modifier = port}, mailbox);
		if (tried || tried.error() != -ENOMEM)
			return tried;
	}
	return kern::Error{-EIO};
}

kern::Result<> PortCommands::open(u32 port)
{
	KERN_TRY(commands_.execute({.opcode = wire::Opcode::init_port, .in_modifier = port}));
	return {};
}

kern::Result<> PortCommands::close(u32 port)
{
	KERN_TRY(commands_.execute({.opcode = wire::Opcode::close_port, .in_modifier = port}));
	return {};
}

kern::Result<> PortCommands::set_capabilities(u32 port, u32 capability_mask,
					      bool reset_qkey_violations)
{
	auto mailbox = KERN_TRY(commands_.mailbox());
	wire::SetPort::reset_qkey_violations.set(mailbox.bytes(), reset_qkey_violations);
	wire::SetPort::capability_mask.set(mailbox.bytes(), capability_mask);
	return commands_.execute_in({.opcode = wire::Opcode::set_port, .in_modifier = port},
				    mailbox);
}

} // namespace mlx4
