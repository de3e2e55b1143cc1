// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card's own management agents: subnet management (SMA) and performance management (PMA). The
// same code answers the driver (MAD_IFC) and the fabric.
#pragma once

#include <cstdint>
#include <optional>

#include <ib/mad.hpp>

#include "core/wire/headers.hpp"

namespace weft::hca
{

class ManagementAgent
{
public:
	virtual ~ManagementAgent() = default;

	// An SMP that came in on @port for QP0, with the source LID @slid of its LRH.
	// Gives the answer, ready to be sent back: a directed-route one has its hop pointer moved
	// and its direction bit set. Nothing: not for the agent, so it goes to the driver's QP0
	// (SMInfo, traps, all responses), or @handled says that it was dropped or swallowed.
	virtual std::optional<ib::Smp> wire_smp(unsigned port, const ib::Smp &smp,
						std::uint16_t slid, bool &handled) = 0;

	// A packet with @headers came in on @port for a queue pair that its P_Key or Q_Key does not
	// open (trap_bad_pkey, trap_bad_qkey). It is counted already; here the manager is told.
	virtual void key_violation(unsigned port, ib::TrapNumber trap,
				   const packet::Headers &headers)
	{
		static_cast<void>(port), static_cast<void>(trap), static_cast<void>(headers);
	}
};

} // namespace weft::hca
