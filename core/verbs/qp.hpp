// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The midlayer's state of QPs that need more than struct ib_qp; it follows the driver's part in the
// same allocation.
#pragma once
#include <kern/lock.hpp>
#include "device.hpp"

/*
 * The multicast groups of a UD QP; for an XRC target QP, its domain's ring and the handles opened
 * on it; other QPs have none.
 */
struct ib_qp_core {
	explicit ib_qp_core(ib_qp &whose) : qp(whose)
	{
		verbs::ring_init(groups);
		verbs::ring_init(handles);
	}

	ib_qp &qp;
	ib_list_head in_domain{}; /* among the domain's target_qps */
	/*
	 * Held across attach_mcast and detach_mcast, so that the driver sees one at a time of each
	 * group.
	 */
	kern::Mutex groups_lock{KERN_LOCK_CLASS("verbs.mcast")};
	ib_list_head groups;
	/* Handlers run under it: an event and the end of a handle exclude each other. */
	kern::IrqSpinLock handles_lock{KERN_LOCK_CLASS("verbs.handles")};
	ib_list_head handles;
};
