// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Finds the QPs of a device by QP number.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include "links.hpp"
#include "resources.hpp"

namespace verbs
{

/*
 * Finds QPs by their numbers. They are in rings by the low bits of the number, because drivers
 * assign numbers consecutively. The lock of the table of all QPs protects the rings. A QP leaves
 * its ring when it is removed from that table. Until then it may be hidden, and its number may
 * already be assigned to another QP. The rings contain XRC targets, but not the handles on them.
 * Context: process. Lock order: that of ResourceTable.
 */
class QpNumbers
{
public:
	explicit QpNumbers(ResourceTable &table) : table_(table)
	{
		for (ib_list_head &ring : rings_)
			ring_init(ring);
	}
	QpNumbers(const QpNumbers &) = delete;
	QpNumbers &operator=(const QpNumbers &) = delete;

	/* Called after the driver has assigned the QP number. */
	void add(ib_qp &qp)
	{
		kern::Guard guard(table_.lock_);
		ring_push(rings_[qp.qp_num % rings], qp.links);
	}
	/* Removes a QP from its ring and from the table. A handle is only in the table. */
	void remove(ib_qp &qp)
	{
		table_.remove_with(qp.res, [&] { ring_remove(qp.links); });
	}
	/*
	 * Calls body(qp) for each visible QP with this number until body returns true. Returns
	 * whether it did. body must not sleep. Several QPs can match, because the special QPs of
	 * two ports have the same numbers.
	 */
	template<class Body>
	bool any_of(u32 number, Body body)
	{
		kern::Guard guard(table_.lock_);
		return ring_any_of<ib_qp, &ib_qp::links>(rings_[number % rings], [&](ib_qp &qp) {
			if (qp.qp_num != number || !Record::of(qp.res).tracking.hold())
				return false;
			const bool answer = body(qp);
			table_.release(Record::of(qp.res));
			return answer;
		});
	}

	/*
	 * Returns the first visible QP with this number for which suits(qp) is true, or nullptr.
	 * The caller must release() it. suits must not sleep.
	 */
	template<class Suits>
	ib_qp *hold(u32 number, Suits suits)
	{
		ib_qp *found = nullptr;
		(void)any_of(number, [&](ib_qp &qp) {
			/* Hold the QP a second time, because any_of() releases its own hold. */
			if (suits(qp) && Record::of(qp.res).tracking.hold())
				found = &qp;
			return found != nullptr;
		});
		return found;
	}
	void release(ib_qp &qp) { table_.release(Record::of(qp.res)); }

private:
	static constexpr u32 rings = 256;

	ResourceTable &table_;
	ib_list_head rings_[rings] KERN_GUARDED_BY(table_.lock_);
};

} // namespace verbs
