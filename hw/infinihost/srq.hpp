// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shared receive queues: a list through the descriptors, which the card follows by their addresses.
#pragma once
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/infinihost/wqe.hpp>
#include "../mellanox/work_queue.hpp"
#include "hca.hpp"

namespace infinihost {

class Srq {
public:
	using Object = rdma::DriverObject<ib_srq, Srq>;
	static Srq &of(ib_srq *srq) { return Object::state(srq); }

	Srq(Hca &hca, ib_srq &verbs);
	~Srq();
	kern::Result<> start(ib_srq_init_attr &attr);
	void stop();
	kern::Result<> modify(const ib_srq_attr &attr, int mask);
	kern::Result<> query(ib_srq_attr &attr);

	/* Any context. */
	int post(const ib_recv_wr *wr, const ib_recv_wr **bad);

	/*
	 * The request in an entry that the card has used, by its address' lower half, which is free again: its length, or not_posted.
	 * Any context; the lock is taken inside that of a CQ.
	 */
	s64 complete(u32 address, u64 &id);

	ib_srq &verbs() { return verbs_; }
	u32 number() const { return number_.value(); }

private:
	static constexpr u16 in_use = 0xffff;

	/* The card follows the links in its own memory; what we rely on is kept here, out of its reach. */
	struct Entry {
		PostedReceive posted;
		u16 next; // the entry that follows in the list of free ones, or in_use
	};

	u8 *descriptor(u32 index) const { return descriptors_ + (index << log_stride_); }
	/* Entry `next` is the one after `index`. */
	void link(u32 index, u32 next)
	{
		entries_[index].next = static_cast<u16>(next);
		reinterpret_cast<wire::WqeNext *>(descriptor(index))->next_word = (base_ + (next << log_stride_)) & wire::WqeNext::address_mask;
	}

	kern::IrqSpinLock lock_;
	u32 head_ = 0; // the next to post
	u32 tail_ = 0; // the last free one, never posted itself
	u32 size_ = 0;
	u32 log_stride_ = 0;
	u32 max_sge_ = 0;
	u32 counter_ = 0;
	u32 base_ = 0; // the lower half of the ring's address
	u8 *descriptors_ = nullptr;
	u32 *record_ = nullptr;
	kern::OwnedArray<Entry> entries_;

	ib_srq &verbs_;
	Hca &hca_;
	Number number_;
	kern::DmaBuffer buffer_;
	Record record_held_;
	kern::Portion events_room_;
	IcmHold context_;
	bool live_ = false;
};

} // namespace infinihost
