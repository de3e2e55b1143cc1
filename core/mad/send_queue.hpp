/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The send side of a special QP: the packets that are queued, and those that are posted. Protected
 * by the special QP's lock. It is independent of agents and responses: the caller handles a send
 * whose packet could not be posted.
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

	/* done: called with each completion of a packet, which gives it back by take_back(). */
	SendQueue(ib_pd *pd, void (*done)(ib_cq *, ib_wc *)) : pd_(pd), done_(done) {}

	void open(ib_qp *qp) { qp_ = qp; }
	/* The hardware has nothing. */
	bool empty() const { return posted_ == 0; }

	/*
	 * Puts a packet behind all others. It is on its way no more from an earlier transmission.
	 */
	void add(Packet &packet)
	{
		kern_assert(packet.place_ == Packet::Place::idle);
		packet.place_ = Packet::Place::backlog;
		packet.send->queued_++;
		backlog_.push_back(packet);
	}
	/* Takes out those packets of a send that wait. How many they were. */
	unsigned withdraw(Send &send) { return send.queued_ == 0 ? 0 : withdraw_some(send); }

	/* A packet that pump() could not post. It is no longer queued. */
	struct Lost {
		Packet *packet;
		ib_wc_status status;
		explicit operator bool() const { return packet; }
	};
	/* True if pump() has anything to do. */
	bool is_due() const { return !backlog_.empty() && posted_ < depth; }
	/*
	 * Hands packets to the hardware while there is room, up to one that does not get there,
	 * which is the answer: it is to be called again then. is_open: whether the QP takes
	 * anything.
	 */
	Lost pump(bool is_open);
	/* A packet's send has completed, so the packet is unmapped. */
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
