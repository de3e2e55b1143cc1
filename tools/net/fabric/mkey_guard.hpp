// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the management key of a port (IBA 14.2.4): decides which SMPs may read and change
 * attributes, counts violations, and ends the protection after a lease period if the manager has
 * disappeared.
 */
#pragma once

#include <chrono>
#include <optional>

#include <ib/smp.hpp>

namespace weft::fabric
{

class MkeyGuard
{
public:
	using TimePoint = std::chrono::steady_clock::time_point;

	/*
	 * Returns true if @smp, a Get, Set or TrapRepress, may access the port that @info
	 * describes. Otherwise it is a violation: it is counted in @info, and starts the lease
	 * period unless that is zero or has already started. An SMP with the correct M_Key stops
	 * the lease period. When the period has expired, the protection bits are cleared, and every
	 * requester may read all attributes, including the M_Key. With @own, the SMP is from the
	 * node's own driver, which may read without the M_Key. It may not write, because the key
	 * also protects the manager's settings from the node.
	 */
	bool admits(ib::PortInfo &info, const ib::Smp &smp, bool own, TimePoint now);

	/*
	 * Returns PortInfo as visible to a requester with @key: a protected key is hidden from all
	 * others.
	 */
	static void conceal(ib::PortInfo &info, ib::be64 key);

private:
	/* The end of the lease period; empty while it is not running. */
	std::optional<TimePoint> lease_end_;
};

} // namespace weft::fabric
