// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the state of QPs that need more than struct ib_qp. This state follows the driver's
// structure in the same allocation.
#pragma once
#include <kern/lock.hpp>
#include "device.hpp"

/*
 * A UD QP has its multicast groups here. An XRC target QP has its link in the domain's ring and the
 * handles opened on it. Other QPs have no ib_qp_core.
 */
struct ib_qp_core {
	explicit ib_qp_core(ib_qp &owner) : qp(owner)
	{
		verbs::ring_init(groups);
		verbs::ring_init(handles);
	}

	ib_qp &qp;
	ib_list_head in_domain{}; /* in the domain's target_qps */
	/*
	 * Held across attach_mcast and detach_mcast, so that the driver processes one call per QP
	 * at a time.
	 */
	kern::Mutex groups_lock{KERN_LOCK_CLASS("verbs.mcast")};
	ib_list_head groups;
	/*
	 * Handlers run under this lock, so that a handle cannot be closed while an event is
	 * reported to it.
	 */
	kern::IrqSpinLock handles_lock{KERN_LOCK_CLASS("verbs.handles")};
	ib_list_head handles;
};
