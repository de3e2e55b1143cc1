// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Selects the component that answers SMPs from the fabric: the card's own agent until the driver's
// QP0 can receive, and then the driver, which gets the answers by the command MAD_IFC. SMPs must
// pass through the driver, because the driver learns its LID only from them.
#pragma once

#include "cards/hca/context.hpp"
#include "cards/mthca/names.hpp"

namespace weft::mthca
{

class Management final : public ManagementAgent
{
public:
	// @agent is the card's own agent. @trusted: the driver may receive SMPs.
	Management(ManagementAgent &agent, const hca::Context &context, bool trusted)
	    : agent_(agent), context_(context), trusted_(trusted)
	{
	}

	std::optional<ib::Smp> wire_smp(unsigned port, const ib::Smp &smp, std::uint16_t slid,
					bool &handled) override
	{
		handled = false;
		if (driver_listens(port))
			return std::nullopt;
		return agent_.wire_smp(port, smp, slid, handled);
	}
	void key_violation(unsigned port, ib::TrapNumber trap,
			   const packet::Headers &headers) override
	{
		agent_.key_violation(port, trap, headers);
	}

private:
	// Returns true if QP0 of the port receives packets.
	bool driver_listens(unsigned port) const
	{
		const hca::QueuePair *const qp = context_.special_queue_pair(port, 0);
		return trusted_ && qp && qp->state != QpState::init && qp->state != QpState::err;
	}

	ManagementAgent &agent_;
	const hca::Context &context_;
	const bool trusted_;
};

} // namespace weft::mthca
