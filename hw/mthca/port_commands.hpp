// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Configures ports by the commands INIT_IB, CLOSE_IB and SET_IB.
#pragma once
#include "capabilities.hpp"
#include "family.hpp"

namespace mthca
{

class PortCommands final : public PortControl
{
public:
	PortCommands(CommandInterface &commands, const Capabilities &capabilities)
	    : commands_(commands), capabilities_(capabilities)
	{
	}

	kern::Result<> open(u32 port) override;
	kern::Result<> close(u32 port) override;
	kern::Result<> set_capabilities(u32 port, u32 capability_mask,
					bool reset_qkey_violations) override;

private:
	CommandInterface &commands_;
	const Capabilities &capabilities_;
};

} // namespace mthca
