// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface through which received SMPs, and P_Key and Q_Key violations, are passed to
// a card's management agent.
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

	// Handles an SMP for QP0 that arrived on @port. @slid is the source LID in its LRH. Returns
	// the response, ready to be sent: if it has a directed route, its hop pointer is updated
	// and its direction bit set. Returns nothing if the SMP is for the driver's QP0 (SMInfo,
	// traps, all responses). Also returns nothing, with @handled set, if the SMP was dropped or
	// needs no response.
	virtual std::optional<ib::Smp> wire_smp(unsigned port, const ib::Smp &smp,
						std::uint16_t slid, bool &handled) = 0;

	// Notifies the subnet manager of a packet with @headers that arrived on @port with a P_Key
	// or Q_Key that its queue pair does not accept (trap_bad_pkey, trap_bad_qkey). The caller
	// has counted the packet.
	virtual void key_violation(unsigned port, ib::TrapNumber trap,
				   const packet::Headers &headers)
	{
		static_cast<void>(port), static_cast<void>(trap), static_cast<void>(headers);
	}
};

} // namespace weft::hca
