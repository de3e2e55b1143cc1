// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Configures ports by the commands SET_PORT, INIT_PORT and CLOSE_PORT.
#pragma once
#include "family.hpp"

namespace mlx4
{

class PortCommands final : public PortControl
{
public:
	explicit PortCommands(CommandInterface &commands) : commands_(commands) {}

	/* Configures the port before it is used. May sleep. Errors: those of commands. */
	kern::Result<> prepare(u32 port, const PortCapabilities &capabilities);
	kern::Result<> open(u32 port) override;
	kern::Result<> close(u32 port) override;
	kern::Result<> set_capabilities(u32 port, u32 capability_mask,
					bool reset_qkey_violations) override;

private:
	CommandInterface &commands_;
};

} // namespace mlx4
