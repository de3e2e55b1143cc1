/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the send side of a special QP: the packets that are queued, and those that are posted.
 * The special QP's lock protects it. This class is independent of agents and responses: the caller
 * handles a send whose packet could not be posted, or whose completion is lost.
 */
#pragma once

#include <rdma/dma.hpp>
#include "send.hpp"

namespace mad
{

class SendQueue
{
public:
	static constexpr int depth = 128;

	/* done: called with each completion of a packet; it must call take_back(). */
	SendQueue(ib_pd *pd, void (*done)(ib_cq *, ib_wc *)) : pd_(pd), done_(done) {}

	void open(ib_qp *qp) { qp_ = qp; }
	/* Returns true if nothing is posted to the hardware. */
	bool empty() const { return posted_ == 0; }
	/*
	 * Returns the packet that was posted first of those that are posted, or nullptr. Requests
	 * of a send queue complete in order, so its completion is the next one.
	 */
	Packet *oldest() const { return posted_packets_.front(); }
	static bool is_posted(const Packet &packet)
	{
		return packet.place_ == Packet::Place::posted;
	}

	/* Called at regular intervals. */
	void begin_period() { period_++; }
	/* Returns true if a packet was posted before the current period, and is still posted. */
	bool is_stalled() const
	{
		const Packet *packet = oldest();
		return packet && packet->period_ != period_;
	}

	/* Appends a packet, which must not be posted from an earlier transmission. */
	void add(Packet &packet)
	{
		kern_assert(packet.place_ == Packet::Place::idle);
		packet.place_ = Packet::Place::backlog;
		packet.send->queued_++;
		backlog_.push_back(packet);
	}
	/* Removes the packets of a send that are not posted yet. Returns their number. */
	unsigned withdraw(Send &send) { return send.queued_ == 0 ? 0 : withdraw_some(send); }

	/* A packet that pump() could not post; it is no longer queued. */
	struct Lost {
		Packet *packet;
		ib_wc_status status;
		explicit operator bool() const { return packet; }
	};
	/* Returns true if pump() has anything to do. */
	bool is_due() const { return !backlog_.empty() && posted_ < depth; }
	/*
	 * Posts packets while there is space. If a packet cannot be posted, it is returned, and the
	 * caller must call the function again. @is_open: packets can be posted to the QP.
	 */
	Lost pump(bool is_open);
	/*
	 * Called when the hardware does not use a packet any more: its send has completed, or the
	 * QP has been reset or destroyed. Unmaps the packet.
	 */
	void take_back(Packet &packet)
	{
		kern_assert(is_posted(packet));
		unmap(packet);
		packet.node_.unlink();
		posted_--;
		packet.place_ = Packet::Place::idle;
	}

private:
	unsigned withdraw_some(Send &send);
	void unmap(const Packet &packet)
	{
		rdma::unmap_single(pd_->device, packet.sge_.addr, ib::mad_bytes,
				   kern::dma::Direction::to_device);
	}

	ib_pd *const pd_;
	void (*const done_)(ib_cq *, ib_wc *);
	ib_qp *qp_ = nullptr;
	kern::List<Packet, &Packet::node_> backlog_;
	kern::List<Packet, &Packet::node_> posted_packets_; /* in the order of posting */
	int posted_ = 0;                                    /* length of posted_packets_ */
	std::uint8_t period_ = 0;
};

} // namespace mad
