/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the send side of a special QP: the packets that are queued, and those that are posted.
 * The special QP's lock protects it. This class is independent of agents and responses: the caller
 * handles a send whose packet could not be posted.
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
	/* Called when a packet's send has completed. Unmaps the packet. */
	void take_back(Packet &packet)
	{
		unmap(packet);
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
	kern::List<Packet, &Packet::backlog_node_> backlog_;
	int posted_ = 0;
};

} // namespace mad
