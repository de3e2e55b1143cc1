// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages rings of work requests: records the posted requests, and retires them.
#pragma once
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_verbs.h>

namespace mellanox_icm
{

/* The driver's record of a posted receive request. */
struct PostedReceive {
	u64 wr_id;
	u32 length; // total length of its segments in bytes
};
/* Returned instead of a length if no request is posted. */
constexpr s64 not_posted = -1;

/*
 * A ring of work requests. `head` is written with the queue's lock held, and `tail` with the CQ's
 * lock held; each side reads the other index without its lock. Both run freely. Their difference is
 * the number of requests that have not completed.
 */
struct SendQueue {
	kern::IrqSpinLock lock;
	u32 head KERN_GUARDED_BY(lock) = 0;
	u32 mask = 0;
	u32 log_stride = 0;
	u32 log_size = 0;
	u8 *entries = nullptr;
	u64 *ids = nullptr;
	u32 signal_all = 0; // or-ed into the big-endian flags of each request
	u32 doorbell_value = 0;
	u32 max_sge = 0;
	u32 max_inline = 0;
	kern::OwnedArray<u64> id_storage;
	alignas(64) u32 tail = 0;

	explicit SendQueue(kern::LockClass &lock_class) : lock(lock_class) {}

	/* Returns the head; for callers that do not hold the lock. */
	u32 posted_head() const KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		return __atomic_load_n(&head, __ATOMIC_ACQUIRE);
	}
};

struct ReceiveQueue {
	kern::IrqSpinLock lock;
	u32 head KERN_GUARDED_BY(lock) = 0;
	u32 mask = 0;
	u32 log_stride = 0;
	u32 max_sge = 0;
	u8 *entries = nullptr;
	PostedReceive *posted = nullptr;
	u32 *record = nullptr;
	kern::OwnedArray<PostedReceive> posted_storage;
	alignas(64) u32 tail = 0;

	explicit ReceiveQueue(kern::LockClass &lock_class) : lock(lock_class) {}

	/* Returns the head; for callers that do not hold the lock. */
	u32 posted_head() const KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		return __atomic_load_n(&head, __ATOMIC_ACQUIRE);
	}
};

/*
 * Retires the send request that is @ahead requests behind the oldest one, and all requests before
 * it. Returns false if it is not outstanding.
 */
inline bool retire_sends_ahead(SendQueue &sq, u32 ahead, u64 &id)
{
	const u32 tail = sq.tail;
	if (ahead >= sq.posted_head() - tail) [[unlikely]]
		return false;
	const u32 at = tail + ahead;
	id = sq.ids[at & sq.mask];
	// post_send() reuses the slots of retired requests.
	__atomic_store_n(&sq.tail, at + 1, __ATOMIC_RELEASE);
	return true;
}

/* Retires the send request whose index a completion contains, and all requests before it. */
inline bool retire_sends(SendQueue &sq, u16 index, u64 &id)
{
	return retire_sends_ahead(sq, static_cast<u16>(index - sq.tail), id);
}

/* Retires the oldest receive request. Returns its length, or not_posted. */
inline s64 retire_receive(ReceiveQueue &rq, u64 &id)
{
	const u32 tail = rq.tail;
	if (tail == rq.posted_head()) [[unlikely]]
		return not_posted;
	const PostedReceive &posted = rq.posted[tail & rq.mask];
	id = posted.wr_id;
	const u32 length = posted.length;
	__atomic_store_n(&rq.tail, tail + 1, __ATOMIC_RELEASE);
	return length;
}

/*
 * Prepares a kernel's queue for a ring at `entries` with this geometry, and writes the ring's
 * capacities into `cap`. signal_all: see SendQueue; 0 if each request has its own flag. Errors:
 * ENOMEM. May sleep.
 */
template<class Geometry>
kern::Result<> use_ring(SendQueue &sq, const Geometry &geometry, u8 *entries, u32 signal_all,
			ib_qp_cap &cap)
{
	sq.log_size = geometry.log_sq_size;
	sq.log_stride = geometry.log_sq_stride;
	sq.mask = (1u << sq.log_size) - 1;
	sq.entries = entries;
	sq.max_sge = geometry.max_send_sge;
	sq.max_inline = geometry.max_inline;
	sq.signal_all = signal_all;
	sq.id_storage = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel, sq.mask + 1));
	sq.ids = sq.id_storage.data();
	cap.max_send_wr = sq.mask + 1;
	cap.max_send_sge = sq.max_sge;
	cap.max_inline_data = sq.max_inline;
	return {};
}

template<class Geometry>
kern::Result<> use_ring(ReceiveQueue &rq, const Geometry &geometry, u8 *entries, ib_qp_cap &cap)
{
	rq.log_stride = geometry.log_rq_stride;
	rq.mask = (1u << geometry.log_rq_size) - 1;
	rq.entries = entries;
	rq.max_sge = geometry.max_recv_sge;
	rq.posted_storage =
		KERN_TRY(kern::make_array<PostedReceive>(kern::Gfp::kernel, rq.mask + 1));
	rq.posted = rq.posted_storage.data();
	cap.max_recv_wr = rq.mask + 1;
	cap.max_recv_sge = rq.max_sge;
	return {};
}

/*
 * Makes the queue look full, so that requests are refused from now on, because the ring will be
 * freed.
 */
template<class Queue>
void close_queue(Queue &queue)
{
	kern::Guard guard(queue.lock);
	kern::write_once(queue.head, queue.tail + queue.mask + 1);
}

/*
 * Retires the oldest request of a queue, which the card will not complete. Returns false if there
 * is none.
 */
inline bool retire_flushed(SendQueue &sq, ib_wc &wc)
{
	if (sq.tail == sq.posted_head())
		return false;
	wc.wr_id = sq.ids[sq.tail & sq.mask];
	__atomic_store_n(&sq.tail, sq.tail + 1, __ATOMIC_RELEASE);
	wc.opcode = IB_WC_SEND;
	return true;
}

inline bool retire_flushed(ReceiveQueue &rq, ib_wc &wc)
{
	if (rq.tail == rq.posted_head())
		return false;
	wc.wr_id = rq.posted[rq.tail & rq.mask].wr_id;
	__atomic_store_n(&rq.tail, rq.tail + 1, __ATOMIC_RELEASE);
	wc.opcode = IB_WC_RECV;
	return true;
}

} // namespace mellanox_icm
