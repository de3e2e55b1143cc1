// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Selects the agent that answers the subnet manager: the card's own until the driver's QP0 can
// receive, then the driver, through MAD_IFC. Otherwise the driver could not learn its LID.
#pragma once

#include <functional>

#include "cards/hca/agents.hpp"
#include "cards/mthca/names.hpp"

namespace weft::mthca
{

class Management final : public ManagementAgent
{
public:
	// @driver_listens returns whether QP0 of a port receives packets.
	Management(Agents &agents, std::function<bool(unsigned port)> driver_listens)
	    : agents_(agents), driver_listens_(std::move(driver_listens))
	{
	}

	std::optional<ib::Smp> wire_smp(unsigned port, const ib::Smp &smp, std::uint16_t slid,
					bool &handled) override
	{
		handled = false;
		if (driver_listens_(port))
			return std::nullopt;
		return agents_.wire_smp(port, smp, slid, handled);
	}
	void key_violation(unsigned port, ib::TrapNumber trap,
			   const packet::Headers &headers) override
	{
		agents_.key_violation(port, trap, headers);
	}

private:
	Agents &agents_;
	const std::function<bool(unsigned)> driver_listens_;
};

} // namespace weft::mthca
