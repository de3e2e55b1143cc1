// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Finds the queue pairs of a device by QP number.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include "links.hpp"
#include "resources.hpp"

namespace verbs
{

/*
 * Finds queue pairs by their numbers. They are in rings by the low bits of the number, because
 * drivers assign numbers consecutively. The lock of the table of all queue pairs protects the
 * rings. A queue pair leaves its ring when it is removed from that table; until then it may be
 * hidden, and its number may already be assigned again. The rings contain XRC targets, but not the
 * handles on them. Context: process. Lock order: as ResourceTable.
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

	/* Called after the driver has assigned the number. */
	void add(ib_qp &qp)
	{
		kern::Guard guard(table_.lock_);
		ring_push(rings_[qp.qp_num % rings], qp.links);
	}
	/* Removes a queue pair from its ring and from the table; a handle is only in the table. */
	void remove(ib_qp &qp)
	{
		table_.remove_with(qp.res, [&] { ring_remove(qp.links); });
	}
	/*
	 * Calls body(qp), which may not sleep, for each of that number that is shown until it
	 * returns true; the answer is whether it did. Special queue pairs of two ports share a
	 * number.
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
	 * The first of that number that is shown and for which suits(qp), which may not sleep, is
	 * true; held until release(). nullptr: none.
	 */
	template<class Suits>
	ib_qp *hold(u32 number, Suits suits)
	{
		ib_qp *found = nullptr;
		(void)any_of(number, [&](ib_qp &qp) {
			/* A second time: any_of() gives its own back. */
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
