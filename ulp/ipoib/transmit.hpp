/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending side of an interface's UD QP: a ring of prepared work requests, completed in NAPI
 * context.
 */
#pragma once

#include "counters.hpp"
#include "fault.hpp"
#include "moderation.hpp"

#include <kern/memory.hpp>
#include <kern/netdev.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace ipoib
{

class TransmitQueue : public kern::Napi<TransmitQueue>
{
public:
	static constexpr u32 default_depth = 512;
	static constexpr u32 max_depth = 8192;
	static constexpr u32 min_depth = 64;

	TransmitQueue() = default;
	/*
	 * Sets the interface, the index of this queue, and where faults that it cannot fix are
	 * reported. Called once.
	 */
	void place(net_device *dev, u32 index, Faults &faults);
	/* A ring. entries: a power of two. Context: process. Errors: ENOMEM. */
	kern::Result<> allocate(u32 entries, u32 lkey);
	void free() { slots_ = {}; }
	/* Sets the QP and its CQ, until detach(). Must be called before start(). */
	void attach(ib_device *device, ib_qp *qp, ib_cq *cq, u32 max_sge, u32 max_inline);
	void detach();

	/*
	 * Enables NAPI and starts the netdev queue; stop() must also be called if this fails.
	 * Errors: those of ib_req_notify_cq().
	 */
	kern::Result<> start();
	/*
	 * Disables NAPI. The netdev queue must be stopped afterwards, because a completion restarts
	 * it. Context: process.
	 */
	void stop();
	/*
	 * Polls until all requests that hold memory have completed. Returns false if the device
	 * does not complete them.
	 */
	bool drain();
	/* Frees packets that never completed. The QP is in RESET or destroyed. */
	void reclaim();
	void report(Fault fault) { faults_->report(fault); }

	/**
	 * send() - queue a packet, and ring the doorbell if no more packets follow
	 * @skb: begins with the encapsulation header; the queue owns it from now on
	 * @ah, @qpn: the destination; the handle outlives the request (DestinationTable::rest())
	 *
	 * Context: start_xmit of the interface.
	 */
	void send(sk_buff *skb, ib_ah *ah, u32 qpn);
	/*
	 * Rings the doorbell for queued packets, if a packet that was not sent is the last for now.
	 * Context: as send().
	 */
	void flush_unless_more()
	{
		if (chain_first_ && !kern_xmit_more())
			post_chain();
	}

	/* Called by the CQ's handler. */
	void on_completion()
	{
		moderation_.on_event();
		schedule();
	}
	int poll(int budget);
	Moderation &moderation() { return moderation_; }

	u32 depth() const { return static_cast<u32>(slots_.size()); }
	const TransmitCounters &counters() const { return counters_; }

private:
	static constexpr unsigned max_pieces = 18;

	struct Slot {
		ib_ud_wr wr;
		sk_buff *skb; /* nullptr after it was freed */
		u32 bytes;
		u16 skip;     /* bytes of the linear part that went into the request itself */
		bool inlined; /* not mapped; freed when the request is posted */
		ib_sge sge[max_pieces];
	};

	u32 used() const { return head_ - __atomic_load_n(&tail_, __ATOMIC_ACQUIRE); }
	Slot &slot(u32 index) { return slots_[index & mask_]; }
	bool prepare_inline(Slot &slot, sk_buff *skb, const kern_tx_packet &packet);
	bool prepare_mapped(Slot &slot, sk_buff *skb, const kern_tx_packet &packet);
	void append(Slot &slot);
	void post_chain();
	void wake_if_room();
	void release_slot(Slot &slot, int budget);
	u32 complete_to(u32 end, int budget);
	/* Inlined, because it runs for each completion. */
	[[gnu::always_inline]] inline void complete(const ib_wc &wc, int budget);
	int take_completions(int budget);

	kern::OwnedArray<Slot> slots_;
	u32 mask_ = 0;
	netdev_queue *queue_ = nullptr;
	ib_device *device_ = nullptr;
	ib_qp *qp_ = nullptr;
	ib_cq *cq_ = nullptr;
	u32 max_sge_ = 0;
	u32 max_inline_ = 0;
	Faults *faults_ = nullptr;

	/* Protected by the network stack's transmit lock. */
	u32 head_ = 0;
	Slot *chain_first_ = nullptr; /* prepared, not yet posted */
	Slot *chain_last_ = nullptr;
	u32 unsignalled_ = 0;   /* posted since the last signalled request */
	u32 signalled_end_ = 0; /* index after the last signalled request */
	bool chain_holds_memory_ = false;

	/* Used in NAPI context only. */
	u32 tail_ = 0;
	TransmitCounters counters_{};
	ib_wc wc_[16];
	Moderation moderation_;
};

} // namespace ipoib
