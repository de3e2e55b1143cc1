// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The queue pairs of a device by their number in packets.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include "links.hpp"

namespace verbs
{

/*
 * In rings by the low bits of the number, which drivers give out one after the other. Handles on
 * XRC targets are not among them: the target is. Context: process. Lock order: outside of
 * ib_qp_core's handles_lock.
 */
class QpNumbers
{
public:
	QpNumbers()
	{
		for (ib_links &ring : rings_)
			ring_init(ring);
	}
	QpNumbers(const QpNumbers &) = delete;
	QpNumbers &operator=(const QpNumbers &) = delete;

	/* From the moment at which the driver has given it its number until it may give it anew. */
	void add(ib_qp &qp)
	{
		kern::Guard guard(lock_);
		ring_push(ring_of(qp.qp_num), qp.links);
	}
	void remove(ib_qp &qp)
	{
		kern::Guard guard(lock_);
		ring_remove(qp.links);
	}
	/*
	 * Calls body(qp), which may not sleep, for each of that number until it returns true; the
	 * answer is whether it did. Special queue pairs of two ports share a number.
	 */
	template<class Body>
	bool any_of(u32 number, Body body)
	{
		kern::Guard guard(lock_);
		return ring_any_of<ib_qp, &ib_qp::links>(ring_of(number), [&](ib_qp &qp) {
			return qp.qp_num == number && body(qp);
		});
	}

private:
	static constexpr u32 rings = 256;
	ib_links &ring_of(u32 number) REQUIRES(lock_) { return rings_[number % rings]; }

	kern::SpinLock lock_{KERN_LOCK_CLASS("verbs.qp_numbers")};
	ib_links rings_[rings] GUARDED_BY(lock_);
};

} // namespace verbs
