// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The QPs that use a CQ.
#pragma once
#include <kern/debugfs.hpp>
#include "stale_completions.hpp"
#include "work_queue.hpp"

namespace mellanox_icm
{

/*
 * The QPs whose sends, or receives, complete in a CQ, and what those that are no more have left
 * there. Under the CQ's lock.
 */
template<class Hca, class Qp>
class CqMembers
{
public:
	CqMembers(Hca &hca, ib_cq &cq) : hca_(hca), cq_(cq) {}

	/* The sends, or the receives, of a QP complete in the CQ of this number from now on. */
	void add(Qp &qp, u32 cqn, bool sends)
	{
		auto &entry = hca_.qp_entry(qp.number());
		if (sends) {
			senders_.push_back(qp);
			kern::write_once(entry.send_cqn, cqn);
		} else {
			receivers_.push_back(qp);
			kern::write_once(entry.recv_cqn, cqn);
		}
	}
	/* No longer. */
	void remove(Qp &qp, bool sends)
	{
		auto &entry = hca_.qp_entry(qp.number());
		if (sends) {
			qp.send_cq_node.unlink();
			kern::write_once(entry.send_cqn, 0);
		} else {
			qp.recv_cq_node.unlink();
			kern::write_once(entry.recv_cqn, 0);
		}
	}

	/*
	 * Moves the stale completions that were polled, for StaleCompletionList::free() without the
	 * lock; or all.
	 */
	void move_spent(StaleCompletionList::List &to) { stale_.move_spent(to); }
	void move_all(StaleCompletionList::List &to) { stale_.move_all(to); }
	/* How many requests of the QP a card that has failed has not flushed into the CQ. */
	u32 unflushed(const Qp &qp) const
	{
		u32 count = 0;
		if (hca_.failed() && &cq_ == qp.verbs().send_cq)
			count += qp.sq.posted_head() - qp.sq.tail;
		if (hca_.failed() && &cq_ == qp.verbs().recv_cq)
			count += qp.rq.posted_head() - qp.rq.tail;
		return count;
	}
	/*
	 * Fills `room`, which may be empty, with what the QP leaves, and keeps it: how many
	 * completions. walk(number, keep) calls keep(completion) for each of the ring's entries
	 * that is the QP's, and puts the number where it returns true.
	 */
	template<class Walk>
	u32 bury(Qp &qp, kern::Owned<StaleCompletions> room, Walk walk);
	/* The next completion of what goes by this number; false if there is none. */
	bool take(u32 number, ib_wc &wc) { return stale_.take(number, wc); }

	/* After the card has failed: returns requests without entries in the ring, up to @count. */
	[[gnu::noinline, gnu::cold]] int take_unflushed(int count, ib_wc *wc);

	/* For debugfs. */
	void dump(kern::debugfs::Output &out);

private:
	/* The oldest request of a queue, as one that was flushed; false if there is none. */
	template<class Queue>
	static bool flush(Qp &qp, Queue &queue, ib_wc &wc)
	{
		if (!retire_flushed(queue, wc))
			return false;
		wc.qp = &qp.verbs();
		wc.status = IB_WC_WR_FLUSH_ERR;
		wc.vendor_err = 0;
		wc.byte_len = 0;
		wc.wc_flags = 0;
		return true;
	}

	Hca &hca_;
	ib_cq &cq_;
	kern::List<Qp, &Qp::send_cq_node> senders_;
	kern::List<Qp, &Qp::recv_cq_node> receivers_;
	StaleCompletionList stale_;
};

template<class Hca, class Qp>
template<class Walk>
u32 CqMembers<Hca, Qp>::bury(Qp &qp, kern::Owned<StaleCompletions> room, Walk walk)
{
	if (!room)
		return 0;
	StaleCompletions &remains = *room.release();
	remains.number = stale_.number();
	const auto keep = [&](ib_wc &wc) {
		wc.qp = rdma::remaining_qp(cq_, qp.verbs());
		return remains.push(wc);
	};
	walk(remains.number, keep);
	const auto make_up = [&](const ib_cq *cq, auto &queue) {
		ib_wc wc{};
		while (hca_.failed() && cq == &cq_ && !remains.full() && flush(qp, queue, wc))
			keep(wc);
	};
	make_up(qp.verbs().send_cq, qp.sq);
	make_up(qp.verbs().recv_cq, qp.rq);
	stale_.keep(remains);
	return remains.count;
}

template<class Hca, class Qp>
int CqMembers<Hca, Qp>::take_unflushed(int count, ib_wc *wc)
{
	int got = stale_.take_all(count, wc);
	const auto take = [&](Qp &qp, auto &queue) {
		while (got < count && flush(qp, queue, wc[got]))
			got++;
	};
	for (Qp &qp : senders_)
		take(qp, qp.sq);
	for (Qp &qp : receivers_)
		take(qp, qp.rq);
	return got;
}

template<class Hca, class Qp>
void CqMembers<Hca, Qp>::dump(kern::debugfs::Output &out)
{
	for (Qp &qp : senders_)
		out.print("\tQP %#x send: head %u, tail %u of %u\n", qp.number(),
			  qp.sq.posted_head(), qp.sq.tail, qp.sq.mask + 1);
	for (Qp &qp : receivers_)
		out.print("\tQP %#x receive: head %u, tail %u of %u\n", qp.number(),
			  qp.rq.posted_head(), qp.rq.tail, qp.rq.mask + 1);
}

} // namespace mellanox_icm
