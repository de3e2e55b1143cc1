// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "transmit.hpp"

#include <kern/time.hpp>

namespace ipoib
{
namespace
{

/*
 * A completion is requested at least this often, so that the slots of inlined packets are freed in
 * time.
 */
constexpr u32 unsignalled_limit = 32;
/*
 * Minimum number of free entries: the queue stops below it, and restarts when a quarter of the ring
 * is free.
 */
constexpr u32 stop_below = 4;
constexpr unsigned drain_ms = 5000;
/*
 * The maximum number of completions in one poll. They are not charged to NAPI's budget, which is
 * for received packets. The rest is polled when NAPI is scheduled the next time, so that others can
 * run.
 */
constexpr int completions_per_poll = 256;

static_assert(sizeof(kern_tx_piece) == sizeof(ib_sge) &&
	      __builtin_offsetof(kern_tx_piece, address) == __builtin_offsetof(ib_sge, addr) &&
	      __builtin_offsetof(kern_tx_piece, length) == __builtin_offsetof(ib_sge, length));

kern_tx_piece *as_pieces(ib_sge *sge)
{
	return reinterpret_cast<kern_tx_piece *>(sge);
}

} // namespace

kern::Result<> TransmitQueue::allocate(u32 entries, u32 lkey)
{
	slots_ = KERN_TRY(kern::make_array<Slot>(kern::Gfp::kernel, entries));
	mask_ = entries - 1;
	u32 index = 0;
	for (Slot &slot : slots_) {
		slot.wr.wr.sg_list = slot.sge;
		slot.wr.wr.wr_id = index++;
		/*
		 * This value selects the QP's own Q_Key, which is that of the broadcast group
		 * (MGMT-05).
		 */
		slot.wr.remote_qkey = 0x80000000;
		for (ib_sge &sge : slot.sge)
			sge.lkey = lkey;
	}
	return {};
}

void TransmitQueue::init(net_device *dev, u32 index, Faults &faults)
{
	faults_ = &faults;
	queue_ = kern_netdev_tx_queue(dev, index);
	add(dev, true);
}

void TransmitQueue::attach(ib_device *device, ib_qp *qp, ib_cq *cq, u32 max_sge, u32 max_inline)
{
	device_ = device;
	qp_ = qp;
	cq_ = cq;
	max_sge_ = max_sge < max_pieces ? max_sge : max_pieces;
	max_inline_ = max_inline;
	moderation_.attach(cq);
}

void TransmitQueue::detach()
{
	moderation_.detach();
	qp_ = nullptr;
	cq_ = nullptr;
}

kern::Result<> TransmitQueue::start()
{
	head_ = tail_ = 0;
	u32 index = 0;
	for (Slot &slot : slots_)
		slot.wr.wr.wr_id = index++;
	chain_first_ = chain_last_ = nullptr;
	unsignalled_ = 0;
	signalled_end_ = 0;
	chain_holds_memory_ = false;
	kern_txq_reset(queue_);
	enable();
	const int armed = ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP);
	if (armed < 0) [[unlikely]]
		return kern::Error{armed};
	kern_txq_wake(queue_);
	return {};
}

void TransmitQueue::stop()
{
	disable();
	moderation_.stop();
}

void TransmitQueue::send(sk_buff *skb, ib_ah *ah, u32 qpn)
{
	kern_tx_packet packet;
	kern_skb_tx_packet(skb, &packet);

	Slot &slot = this->slot(head_);
	const bool inlined = packet.length <= max_inline_ && !packet.gso_size;
	if (inlined ? !prepare_inline(slot, skb, packet) : !prepare_mapped(slot, skb, packet)) {
		counters_.errors++;
		kern_skb_drop(skb);
		flush_unless_more();
		return;
	}

	slot.skb = skb;
	slot.bytes = packet.length;
	slot.wr.ah = ah;
	slot.wr.remote_qpn = qpn;
	slot.wr.wr.send_flags =
		(inlined ? IB_SEND_INLINE : 0) | (packet.checksum ? IB_SEND_IP_CSUM : 0);
	append(slot);
	counters_.packets += packet.gso_size ? packet.gso_segments : 1;
	counters_.bytes += packet.length;

	/* An inlined packet is consumed at once, so the byte queue limit does not apply to it. */
	bool last = inlined ? !kern_xmit_more() : kern_txq_sent(queue_, packet.length);
	if (depth() - used() < stop_below) [[unlikely]] {
		kern_txq_stop(queue_);
		counters_.queue_stops++;
		last = true;
		/*
		 * Request a completion, because without one the stopped queue would never restart.
		 */
		chain_holds_memory_ = true;
	}
	if (last || kern_txq_stopped(queue_))
		post_chain();
	/* Completions may have freed entries between the check and the stop. */
	if (kern_txq_stopped(queue_)) [[unlikely]]
		wake_if_space();
}

bool TransmitQueue::prepare_inline(Slot &slot, sk_buff *skb, const kern_tx_packet &packet)
{
	if (packet.fragments && kern_skb_linearize(skb)) [[unlikely]]
		return false;
	kern_tx_packet linear = packet;
	if (packet.fragments)
		kern_skb_tx_packet(skb, &linear);
	slot.sge[0].addr = reinterpret_cast<u64>(linear.data);
	slot.sge[0].length = linear.length;
	slot.wr.wr.num_sge = 1;
	slot.wr.wr.opcode = IB_WR_SEND;
	slot.inlined = true;
	counters_.inlined++;
	return true;
}

bool TransmitQueue::prepare_mapped(Slot &slot, sk_buff *skb, const kern_tx_packet &packet)
{
	u16 skip = 0;
	slot.wr.wr.opcode = IB_WR_SEND;
	if (packet.gso_size) {
		/*
		 * The headers are copied into the request; the device puts them in front of each
		 * segment.
		 */
		if (packet.header_length > packet.linear) [[unlikely]]
			return false;
		skip = static_cast<u16>(packet.header_length);
		slot.wr.wr.opcode = IB_WR_LSO;
		slot.wr.header = packet.data;
		slot.wr.hlen = static_cast<int>(packet.header_length);
		slot.wr.mss = static_cast<int>(packet.gso_size);
		counters_.segmented++;
	}
	const unsigned pieces = packet.fragments + (packet.linear > skip);
	if (pieces > max_sge_ && (packet.gso_size || kern_skb_linearize(skb))) [[unlikely]]
		return false;
	const int mapped = kern_skb_map(device_->dma_device, skb, skip, as_pieces(slot.sge));
	if (mapped < 0) [[unlikely]]
		return false;
	slot.wr.wr.num_sge = mapped;
	slot.skip = skip;
	slot.inlined = false;
	chain_holds_memory_ = true;
	return true;
}

void TransmitQueue::append(Slot &slot)
{
	slot.wr.wr.next = nullptr;
	if (chain_last_)
		chain_last_->wr.wr.next = &slot.wr.wr;
	else
		chain_first_ = &slot;
	chain_last_ = &slot;
	head_++;
	unsignalled_++;
}

/*
 * Posts all queued packets with one doorbell. Only the last request can be signalled. It is
 * signalled only if a packet holds memory or unsignalled_limit is reached.
 */
void TransmitQueue::post_chain()
{
	Slot *const first = chain_first_;
	if (!first)
		return;
	if (chain_holds_memory_ || unsignalled_ >= unsignalled_limit) {
		chain_last_->wr.wr.send_flags |= IB_SEND_SIGNALED;
		unsignalled_ = 0;
		signalled_end_ = head_;
	}
	chain_first_ = chain_last_ = nullptr;
	chain_holds_memory_ = false;
	counters_.doorbells++;

	const ib_send_wr *bad = nullptr;
	if (ib_post_send(qp_, &first->wr.wr, &bad)) [[unlikely]] {
		/*
		 * Requests that were refused never complete. reclaim() frees them when the QP is
		 * reset.
		 */
		report(fault_recheck);
		counters_.errors++;
	}
	const ib_send_wr *const end = bad;
	for (const ib_send_wr *wr = &first->wr.wr; wr != end;) {
		Slot &posted = slot(static_cast<u32>(wr->wr_id));
		wr = wr->next;
		if (posted.inlined) {
			kern_skb_consume(posted.skb, 0);
			posted.skb = nullptr;
		}
	}
}

void TransmitQueue::release_slot(Slot &slot, int budget)
{
	if (!slot.skb)
		return;
	if (!slot.inlined)
		kern_skb_unmap(device_->dma_device, slot.skb, slot.skip, as_pieces(slot.sge));
	kern_skb_consume(slot.skb, budget);
	slot.skb = nullptr;
}

/* Completes all requests before `end`. Returns the number of packets that held memory. */
u32 TransmitQueue::complete_to(u32 end, int budget)
{
	u32 packets = 0, bytes = 0, tail = tail_;
	for (; tail != end; tail++) {
		Slot &done = slot(tail);
		/*
		 * The function that has posted the packet consumes it, perhaps later and on another
		 * CPU.
		 */
		if (done.inlined)
			continue;
		packets++;
		bytes += done.bytes;
		release_slot(done, budget);
	}
	__atomic_store_n(&tail_, tail, __ATOMIC_RELEASE);
	if (packets)
		kern_txq_completed(queue_, packets, bytes);
	return packets;
}

/*
 * Handles a completion, which also completes all earlier requests. The wr_id is the index of the
 * request's slot.
 */
void TransmitQueue::complete(const ib_wc &wc, int budget)
{
	const u32 index = static_cast<u32>(wc.wr_id) & mask_;
	complete_to(tail_ + ((index - tail_) & mask_) + 1, budget);
	counters_.completions++;
}

/* Polls completions once. Returns their number. */
int TransmitQueue::take_completions(int budget)
{
	const int count = ib_poll_cq(cq_, sizeof(wc_) / sizeof(wc_[0]), wc_);
	for (int i = 0; i < count; i++) {
		if (wc_[i].status != IB_WC_SUCCESS) [[unlikely]] {
			counters_.errors++;
			report(fault_recheck);
		}
		complete(wc_[i], budget);
	}
	return count > 0 ? count : 0;
}

/*
 * Restarts a netdev queue that was stopped because the ring was full. The transmit path stops the
 * queue before it reads tail_, and the completion path writes tail_ before it checks whether the
 * queue is stopped. So at least one of them notices that the queue must be restarted.
 */
void TransmitQueue::wake_if_space()
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (kern_txq_stopped(queue_) && depth() - used() >= depth() / 4)
		kern_txq_wake(queue_);
}

/*
 * NAPI poll method. Context: softirq. Returns 0 if it has found all completions, and otherwise the
 * whole budget, so that it is called again. netpoll calls it with a budget of 0, with which NAPI
 * must not be completed.
 */
int TransmitQueue::poll(int budget)
{
	int done = 0, taken;
	do {
		taken = take_completions(budget);
		done += taken;
	} while (taken > 0 && done < completions_per_poll);
	if (done)
		wake_if_space();
	if (taken > 0 || !budget)
		return budget;
	moderation_.idle(counters_.completions, counters_.bytes);
	if (!complete_done(0))
		return 0;
	const int armed = ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (armed > 0) {
		counters_.rearms_missed++;
		schedule();
	} else if (armed < 0) [[unlikely]] {
		/* NOTIFY-02: no further event will be raised. */
		report(fault_queue);
	}
	return 0;
}

bool TransmitQueue::drain()
{
	const auto deadline = kern::Deadline::in_ms(drain_ms);
	/*
	 * The packets behind the last signalled one were inlined. They hold no memory, so reclaim()
	 * can free their slots without a completion.
	 */
	while (static_cast<int>(signalled_end_ - tail_) > 0) {
		if (ib_poll_cq(cq_, 1, wc_) > 0) {
			complete(wc_[0], 0);
			continue;
		}
		if (deadline.passed())
			return false;
		kern::sleep_ms(1);
	}
	return true;
}

void TransmitQueue::reclaim()
{
	chain_first_ = chain_last_ = nullptr;
	for (u32 tail = tail_; tail != head_; tail++)
		release_slot(slot(tail), 0);
	tail_ = head_;
	kern_txq_reset(queue_);
	/*
	 * Drop completions from before the RESET; otherwise they would be taken for those of new
	 * requests.
	 */
	while (cq_ && ib_poll_cq(cq_, sizeof(wc_) / sizeof(wc_[0]), wc_) > 0)
		;
}

} // namespace ipoib
