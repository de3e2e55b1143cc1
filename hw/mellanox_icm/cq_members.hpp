// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists the QPs whose sends or receives complete in a CQ.
#pragma once
#include <kern/debugfs.hpp>
#include "stale_completions.hpp"
#include "work_queue.hpp"

namespace mellanox_icm
{

/* The QPs whose sends, or receives, complete in a CQ. Protected by the CQ's lock. */
template<class Hca, class Qp>
class CqMembers
{
public:
	CqMembers(Hca &hca, ib_cq &cq) : hca_(hca), cq_(cq) {}

	/* Adds a QP whose sends, or receives, complete in the CQ, which has the number `cqn`. */
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
	/* Removes a QP. */
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
	 * Called when a QP is being destroyed: saves its completions in the ring's entries from
	 * @consumer to @end. After the card has failed, also saves the requests that the card has
	 * not flushed, as far as there are slots. Returns the number of completions. take_entry(at,
	 * wc) marks the entry as stale and returns its completion, or returns false if the entry is
	 * not the QP's.
	 */
	template<class TakeEntry>
	u32 save(Qp &qp, u32 consumer, u32 end, StaleCompletions &stale, TakeEntry take_entry);
	/*
	 * After the card has failed: returns requests that have no entries in the ring, up to
	 * @count.
	 */
	[[gnu::noinline, gnu::cold]] int take_unflushed(int count, ib_wc *wc,
							StaleCompletions &stale);

	/* Prints the QPs, for debugfs. */
	void dump(kern::debugfs::Output &out);

private:
	u32 save_unflushed(Qp &qp, u32 consumer, StaleCompletions &stale);
	/* Returns the oldest request of a queue as flushed. Returns false if there is none. */
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
};

template<class Hca, class Qp>
template<class TakeEntry>
u32 CqMembers<Hca, Qp>::save(Qp &qp, u32 consumer, u32 end, StaleCompletions &stale,
			     TakeEntry take_entry)
{
	const bool failed = hca_.failed();
	if (failed) {
		stale.set_end(end);
		end = stale.clip(consumer, end);
	}
	u32 saved = 0;
	for (u32 at = consumer; at != end; at++) {
		ib_wc wc{};
		if (!take_entry(at, wc))
			continue;
		wc.qp = rdma::remaining_qp(cq_, qp.verbs());
		stale.save(at, wc);
		saved++;
	}
	return failed ? saved + save_unflushed(qp, consumer, stale) : saved;
}

template<class Hca, class Qp>
u32 CqMembers<Hca, Qp>::save_unflushed(Qp &qp, u32 consumer, StaleCompletions &stale)
{
	u32 saved = 0;
	const auto save = [&](const ib_cq *cq, auto &queue) {
		ib_wc wc{};
		while (cq == &cq_ && stale.has_free_slot(consumer) && flush(qp, queue, wc)) {
			wc.qp = rdma::remaining_qp(cq_, qp.verbs());
			stale.add_flushed(wc);
			saved++;
		}
	};
	save(qp.verbs().send_cq, qp.sq);
	save(qp.verbs().recv_cq, qp.rq);
	return saved;
}

template<class Hca, class Qp>
int CqMembers<Hca, Qp>::take_unflushed(int count, ib_wc *wc, StaleCompletions &stale)
{
	int got = stale.take_flushed(count, wc);
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
