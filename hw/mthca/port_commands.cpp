// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port_commands.hpp"

namespace mthca
{

kern::Result<> PortCommands::open(u32 port)
{
	auto mailbox = KERN_TRY(commands_.mailbox());
	u8 *const in = mailbox.bytes();
	wire::InitIb::mtu.set(in, capabilities_.port.max_mtu);
	wire::InitIb::width.set(in, capabilities_.port_width);
	wire::InitIb::vls.set(in, capabilities_.port.max_vls);
	wire::InitIb::max_gids.set(in, capabilities_.port.gids);
	wire::InitIb::max_pkeys.set(in, capabilities_.port.pkeys);
	return commands_.execute_in({.opcode = wire::opcode::init_ib, .in_modifier = port},
				    mailbox);
}

kern::Result<> PortCommands::close(u32 port)
{
	KERN_TRY(commands_.execute({.opcode = wire::opcode::close_ib, .in_modifier = port}));
	return {};
}

kern::Result<> PortCommands::set_capabilities(u32 port, u32 capability_mask,
					      bool reset_qkey_violations)
{
	auto mailbox = KERN_TRY(commands_.mailbox());
	wire::SetIb::reset_qkey_violations.set(mailbox.bytes(), reset_qkey_violations);
	wire::SetIb::capability_mask.set(mailbox.bytes(), capability_mask);
	return commands_.execute_in({.opcode = wire::opcode::set_ib, .in_modifier = port}, mailbox);
}

} // namespace mthca
