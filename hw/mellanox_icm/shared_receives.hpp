// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements shared receive queues as a linked list of descriptors, which the card follows.
#pragma once
#include <rdma/driver.hpp>
#include "command.hpp"
#include "number_allocator.hpp"
#include "requests.hpp"

namespace mellanox_icm
{

/*
 * Base class of a card's own SRQ. Own creates the ring, and writes the links in its card's format:
 *
 *	void put_link(u32 index, u32 next);	// entry `next` follows entry `index`
 *
 * Context: the card's layout of an SRQ context.
 */
template<class Own, class Hca, class Context>
class SharedReceives
{
public:
	kern::Result<> modify(const ib_srq_attr &attr, int mask);
	kern::Result<> query(ib_srq_attr &attr);

	/* Context: any. */
	int post(const ib_recv_wr *wr, const ib_recv_wr **bad);

	ib_srq &verbs() { return verbs_; }
	u32 number() const { return number_.value(); }

protected:
	/* Number of bytes in front of the segments, which contain the link. */
	static constexpr u32 head_bytes = 16;
	static constexpr u16 in_use = 0xffff;

	/*
	 * The card follows the links in the descriptors, to which it has access. The driver's own
	 * record of the list is stored here, where the card cannot change it.
	 */
	struct Entry {
		PostedReceive posted;
		u16 next; // the next entry in the list of free entries, or in_use
	};

	SharedReceives(Hca &hca, ib_srq &verbs, kern::LockClass &lock_class)
	    : lock_(lock_class), verbs_(verbs), hca_(hca)
	{
	}
	~SharedReceives() = default;

	u8 *descriptor(u32 index) const { return descriptors_ + (index << log_stride_); }
	/* Links all entries into the list of free entries. */
	void link_all()
	{
		for (u32 i = 0; i < size_; i++)
			link(i, (i + 1) & (size_ - 1));
		tail_ = size_ - 1;
	}
	/*
	 * Frees an entry that the card has used. Returns the length of its request, or not_posted.
	 * Context: any; the lock is taken inside that of a CQ.
	 */
	s64 complete_entry(u32 index, u64 &id);

	kern::IrqSpinLock lock_;
	u32 head_ = 0; // the next entry to post
	u32 tail_ = 0; // the last free entry, which is never posted itself
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

private:
	void link(u32 index, u32 next)
	{
		entries_[index].next = static_cast<u16>(next);
		static_cast<Own *>(this)->put_link(index, next);
	}
};

template<class Own, class Hca, class Context>
kern::Result<> SharedReceives<Own, Hca, Context>::modify(const ib_srq_attr &attr, int mask)
{
	// The card cannot resize an SRQ.
	if (mask & IB_SRQ_MAX_WR)
		return kern::Error{-EINVAL};
	if (!(mask & IB_SRQ_LIMIT))
		return {};
	if (attr.srq_limit >= size_)
		return kern::Error{-EINVAL};
	KERN_TRY(hca_.commands().execute({.opcode = hw::mellanox_icm::Opcode::arm_srq,
					  .in_modifier = number(),
					  .in_param = attr.srq_limit}));
	return {};
}

template<class Own, class Hca, class Context>
kern::Result<> SharedReceives<Own, Hca, Context>::query(ib_srq_attr &attr)
{
	auto mailbox = KERN_TRY(hca_.commands().mailbox());
	KERN_TRY(hca_.commands().execute_out(
		{.opcode = hw::mellanox_icm::Opcode::query_srq, .in_modifier = number()}, mailbox));
	attr.srq_limit = Context::limit.get(mailbox.bytes());
	attr.max_wr = size_ - 1;
	attr.max_sge = max_sge_;
	return {};
}

template<class Own, class Hca, class Context>
int SharedReceives<Own, Hca, Context>::post(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	kern::Guard guard(lock_);
	u32 posted = 0;
	int error = 0;
	for (; wr; wr = wr->next) {
		if (static_cast<u32>(wr->num_sge) > max_sge_) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		if (head_ == tail_) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		Entry &entry = entries_[head_];
		entry.posted = {wr->wr_id,
				put_receive(descriptor(head_) + head_bytes, *wr, max_sge_)};
		head_ = entry.next;
		entry.next = in_use;
		posted++;
	}
	if (posted) {
		counter_ += posted;
		kern::dma_wmb();
		__atomic_store_n(record_, __builtin_bswap32(counter_ & 0xffff), __ATOMIC_RELAXED);
	}
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

template<class Own, class Hca, class Context>
s64 SharedReceives<Own, Hca, Context>::complete_entry(u32 index, u64 &id)
{
	kern::Guard guard(lock_);
	if (index >= size_ || entries_[index].next != in_use) [[unlikely]]
		return not_posted;
	const PostedReceive posted = entries_[index].posted;
	id = posted.wr_id;
	// Appends the entry to the list of free entries.
	link(tail_, index);
	tail_ = index;
	// The link of the last entry is written when another entry is freed.
	entries_[index].next = 0;
	return posted.length;
}

} // namespace mellanox_icm
