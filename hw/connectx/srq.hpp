// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shared receive queues.
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "hca.hpp"
#include "qp.hpp"
#include "user_queue.hpp"

namespace connectx {

class Srq {
public:
	using Object = rdma::DriverObject<ib_srq, Srq>;
	static Srq &of(ib_srq *srq) { return Object::state(srq); }

	Srq(Hca &hca, ib_srq &verbs);
	~Srq();
	/* udata: of a program, in whose memory the queue then lies. */
	kern::Result<> start(ib_srq_init_attr &attr, ib_udata *udata);
	void stop();
	kern::Result<> modify(const ib_srq_attr &attr, int mask);
	kern::Result<> query(ib_srq_attr &attr);

	/* Any context. */
	int post(const ib_recv_wr *wr, const ib_recv_wr **bad);

	/*
	 * The request in an entry that the card has used, which is free again: its length, or not_posted.
	 * Any context; the lock is taken inside that of a CQ.
	 */
	s64 complete(u32 index, u64 &id);

	ib_srq &verbs() { return verbs_; }
	u32 number() const { return number_.value(); }

	/* An XRC SRQ's, among those of its domain. */
	kern::ListNode domain_node;

private:
	static constexpr u16 in_use = 0xffff;

	/* The card follows the links in its own memory; what we rely on is kept here, out of its reach. */
	struct Entry {
		PostedReceive posted;
		u16 next; // the entry that follows in the list of free ones, or in_use
	};

	kern::Result<> make_own_ring();
	kern::Result<> take_user_ring(ib_udata &udata);
	QueuePlace place() const
	{
		return {hca_.uar_page(), buffer_.log_page_size(), buffer_.mtt_offset(), doorbell_.bus_address()};
	}
	u8 *descriptor(u32 index) const { return descriptors_ + (index << log_stride_); }

	kern::IrqSpinLock lock_;
	u32 head_ = 0; // the next to post
	u32 tail_ = 0; // the last free one, never posted itself
	u32 size_ = 0;
	u32 log_stride_ = 0;
	u32 max_sge_ = 0;
	u32 counter_ = 0;
	u8 *descriptors_ = nullptr;
	u32 *record_ = nullptr;
	kern::OwnedArray<Entry> entries_;

	ib_srq &verbs_;
	Hca &hca_;
	Number number_;
	QueueBuffer buffer_;
	DoorbellRecord doorbell_;
	// Instead of the two, of a program's queue; nobody posts to it here.
	UserQueue user_;
	kern::Portion events_room_;
	IcmHold context_, protection_;
	bool live_ = false;
};

} // namespace connectx
