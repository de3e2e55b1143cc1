// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The management key of a port, IBA 14.2.4: which MADs may read and change attributes, the
 * violation counter, and the lease after which the protection ends if its manager has disappeared.
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
	 * describes. False is a violation: it is counted in @info, and starts the lease if there is
	 * one and it does not run yet. Anything with the right key stops the lease. Once the lease
	 * has run out, the protection bits are clear: everybody may read, the key included.
	 * @own: the node's own driver asks to pass without key. It may read, and no more: the key
	 * is there to keep the manager's settings from the node, too.
	 */
	bool admits(ib::PortInfo &info, const ib::Smp &smp, bool own, TimePoint now);

	/*
	 * Returns PortInfo as visible to a requester with @key: a protected key is hidden from all
	 * others.
	 */
	static void conceal(ib::PortInfo &info, ib::be64 key);

private:
	/* When the lease ends; empty while it does not run. */
	std::optional<TimePoint> lease_end_;
};

} // namespace weft::fabric
