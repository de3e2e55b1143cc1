// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements queue pairs of the RNIC, whose work queues are in the card's memory.
#pragma once
#include <hw/amso1100/events.hpp>
#include <hw/amso1100/work.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <rdma/iw_cm.h>
#include "rnic.hpp"
#include "stream_states.hpp"

namespace amso1100
{

/*
 * The driver's record of a posted request. From the card's completion, the driver uses only the
 * fact that the request has completed.
 */
struct Posted {
	u64 wr_id;
	u32 length; /* size of the receive buffer, or number of bytes to read */
	ib_wc_opcode opcode;
};

/*
 * A queue of requests in the card's memory. `head` is written with this lock held, and `tail` with
 * the CQ's lock held; both are indices of slots.
 */
struct WorkRing {
	explicit WorkRing(kern::LockClass &lock_class) : lock(lock_class) {}

	kern::IrqSpinLock lock;
	u32 head = 0;
	u16 hints = 0;
	u32 depth = 0;
	u32 index = 0;
	u32 slot_bytes = 0;
	u32 max_sge = 0;
	kern::Mmio shared, slots;
	kern::OwnedArray<Posted> posted;
	alignas(64) u32 tail = 0;

	u32 outstanding(u32 from) const { return (head + depth - from) % depth; }
};

class Qp
{
public:
	using Object = rdma::DriverObject<ib_qp, Qp>;
	static Qp &of(ib_qp *qp) { return Object::state(qp); }

	Qp(Rnic &rnic, ib_qp &verbs);
	/* Creates the QP on the card. Errors: EINVAL, ENOMEM, those of requests. May sleep. */
	kern::Result<> start(ib_qp_init_attr &init);
	/*
	 * Destroys the QP on the card. Returns the number of its completions that remain in CQs.
	 * May sleep.
	 */
	u32 stop();
	kern::Result<> modify(const ib_qp_attr &attr, int mask);
	kern::Result<> query(ib_qp_attr &attr, ib_qp_init_attr &init);

	/* Context: any. */
	int post_send(const ib_send_wr *wr, const ib_send_wr **bad);
	int post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad);

	/*
	 * Completes the request of a CQ entry. The CQ's lock is held. Returns false if the entry
	 * does not belong to a posted request.
	 */
	bool complete(const u8 *entry, ib_wc &wc);
	/*
	 * Flushes the oldest outstanding request of a queue. The CQ's lock is held. Returns false
	 * if there is none.
	 */
	bool flush_one(bool receives, ib_wc &wc);
	/*
	 * Called when the card has failed: flushes all posted requests, and reports the end of the
	 * stream to the connection manager. New requests are refused. May be called again. May
	 * sleep.
	 */
	void give_up();

	/* Handles an event of the QP. Context: the work item that handles events. */
	void handle_event(wire::EventId id, const Message &event);

	/* In stream.cpp: these implement methods of struct iw_cm_ops. May sleep. */
	kern::Result<> connect(iw_cm_id &id, const iw_cm_param &param);
	kern::Result<> accept(iw_cm_id &id, const iw_cm_param &param);
	kern::Result<> disconnect(bool abrupt);

	ib_qp &verbs() { return verbs_; }
	Rnic &rnic() { return rnic_; }
	u32 number() const { return number_; }

private:
	kern::Result<> use_create_reply(const Message &message);
	kern::Result<> set_up_ring(WorkRing &ring, const Message &reply, size_t depth_at,
				   size_t bytes_at, size_t index_at, size_t start_at,
				   u32 least_bytes);
	kern::Result<> request_state(u32 state, u32 ord = wire::no_change,
				     u32 ird = wire::no_change);
	/* Closes the stream abruptly, and flushes all posted requests. */
	kern::Result<> end();
	/*
	 * Performs the transition of an event, and notifies the connection manager. Returns false
	 * if the event is not valid in the current state.
	 */
	bool advance(StreamEvent event, int status = 0, const Message *message = nullptr);
	void report(Upcall what, int status, const Message *message) KERN_REQUIRES(stream_lock_);
	/* Associates the connection manager's ID with the stream, which begins with the event. */
	kern::Result<> begin_stream(StreamEvent event, iw_cm_id &id);
	kern::Result<> set_reads(const iw_cm_param &param);
	Stream stream();
	void dispatch(ib_event_type type);

	/* Writes a request into its slot. Returns its size, or a negative errno. */
	int build(const ib_send_wr &wr, u8 *slot) const;
	int build_sges(const ib_sge *list, int count, u8 *slot, size_t at, u32 &total) const;
	void publish(WorkRing &ring);
	static bool retire(WorkRing &ring, u32 count, Posted &posted);

	Rnic &rnic_;
	ib_qp &verbs_;
	WorkRing sq_{KERN_LOCK_CLASS("weft_amso1100_sq")};
	WorkRing rq_{KERN_LOCK_CLASS("weft_amso1100_rq")};
	ib_qp_cap cap_{};
	u32 number_ = 0;
	u32 handle_ = 0;
	kern::DmaPool::Piece words_[2]{};

	/*
	 * Held during requests that change the state, so that the card receives them in the order
	 * of the states.
	 */
	kern::Mutex state_lock_{KERN_LOCK_CLASS("weft_amso1100_qp")};
	/*
	 * Taken inside state_lock_. Held while the connection manager is notified, so that it
	 * receives the notifications in the order of the states.
	 */
	kern::Mutex stream_lock_{KERN_LOCK_CLASS("weft_amso1100_stream")};
	Stream stream_ KERN_GUARDED_BY(stream_lock_) = Stream::idle;
	/* valid until the last notification of the stream */
	iw_cm_id *id_ KERN_GUARDED_BY(stream_lock_) = nullptr;
	bool live_ = false;
};

} // namespace amso1100
