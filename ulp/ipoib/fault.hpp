/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Lists the faults that a queue detects but cannot fix itself. The faults are reported to the
 * recovery work of the interface.
 */
#pragma once

#include <kern/types.h>
#include <kern/work.hpp>

namespace ipoib
{

/* Ordered by the cost of the recovery, cheapest first. */
enum Fault : u32 {
	fault_none = 0,
	/* a request failed: its QP may have stopped (SQE, IBA 10.3.1), or be in ERR */
	fault_recheck = 1 << 0,
	/* a QP is in error or does not complete requests: the queues are stopped and started */
	fault_queue = 1 << 1,
	/* a CQ has overrun or lost completions: only a new CQ helps */
	fault_cq = 1 << 2,
};

class Faults
{
public:
	explicit Faults(kern::DelayedWork &recovery_work) : recovery_work_(recovery_work) {}

	/* Records a fault and schedules the recovery. Context: any. */
	void report(Fault fault)
	{
		__atomic_fetch_or(&seen_, fault, __ATOMIC_RELEASE);
		recovery_work_.reschedule(0);
	}
	/* Returns the faults that were reported since the last call, and clears them. */
	u32 take() { return __atomic_exchange_n(&seen_, u32{fault_none}, __ATOMIC_ACQ_REL); }

private:
	u32 seen_ = fault_none;
	kern::DelayedWork &recovery_work_;
};

} // namespace ipoib
