/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the transmit queue of an interface's UD QP: a ring of prepared work requests,
 * completed in NAPI context.
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
	 * Sets the network device, the index of this queue, and the object to which it reports
	 * faults that it cannot fix. Called once.
	 */
	void init(net_device *dev, u32 index, Faults &faults);
	/* Allocates the ring. entries: a power of two. Context: process. Errors: ENOMEM. */
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
	 * Disables NAPI. The caller must stop the netdev queue afterwards, because a completion
	 * restarts it. Context: process.
	 */
	void stop();
	/*
	 * Polls until all requests that hold memory have completed. Returns false if the device
	 * does not complete them in time. Context: process.
	 */
	bool drain();
	/* Frees packets that never completed. The QP must be in RESET or destroyed. */
	void reclaim();
	void report(Fault fault) { faults_->report(fault); }

	/**
	 * send() - queue a packet, and ring the doorbell if no more packets follow
	 * @skb: begins with the encapsulation header; the queue owns it from now on
	 * @ah, @qpn: the destination; the handle must outlive the request
	 * (DestinationTable::retire())
	 *
	 * Context: start_xmit of the interface.
	 */
	void send(sk_buff *skb, ib_ah *ah, u32 qpn);
	/*
	 * Rings the doorbell for queued packets if no more packets follow. The transmit path calls
	 * this for a packet that it does not queue here. Context: start_xmit.
	 */
	void flush_unless_more()
	{
		if (chain_first_ && !kern_xmit_more())
			post_chain();
	}

	/* Called for each event of the CQ. Context: the CQ's handler. */
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
		sk_buff *skb; /* nullptr after the packet was freed */
		u32 bytes;
		/* bytes of the linear part that are copied into the request (LSO headers) */
		u16 skip;
		/*
		 * the packet is copied into the request: not mapped, and freed when the request is
		 * posted
		 */
		bool inlined;
		ib_sge sge[max_pieces];
	};

	u32 used() const { return head_ - __atomic_load_n(&tail_, __ATOMIC_ACQUIRE); }
	Slot &slot(u32 index) { return slots_[index & mask_]; }
	bool prepare_inline(Slot &slot, sk_buff *skb, const kern_tx_packet &packet);
	bool prepare_mapped(Slot &slot, sk_buff *skb, const kern_tx_packet &packet);
	void append(Slot &slot);
	void post_chain();
	void wake_if_space();
	void release_slot(Slot &slot, int budget);
	u32 complete_to(u32 end, int budget);
	/* Inlined, because this function runs for each completion. */
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
	Slot *chain_first_ = nullptr; /* prepared requests that are not posted yet */
	Slot *chain_last_ = nullptr;
	u32 unsignalled_ = 0;   /* number of requests since the last signalled one */
	u32 signalled_end_ = 0; /* ring index after the last signalled request */
	bool chain_holds_memory_ = false;

	/* Used in NAPI context only. */
	u32 tail_ = 0;
	TransmitCounters counters_{};
	ib_wc wc_[16];
	Moderation moderation_;
};

} // namespace ipoib
