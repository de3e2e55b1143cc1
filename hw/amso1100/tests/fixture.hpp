// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a simulated card with a queue pair, whose sends and receives complete in one CQ.
#pragma once
#include "card.hpp"

namespace amso1100
{

using kern::kunit::Boxed;
using kern::kunit::eventually;

struct Bed {
	static constexpr u32 depth = 16, cqe = 255;

	explicit Bed(unsigned int reply_timeout_ms = 20000) : card(reply_timeout_ms)
	{
		if (!card.there() || !card->start())
			return;
		auto made_pd = rdma::Pd::create(&card->ib->ib);
		auto made_cq = rdma::CompletionQueue::create(&card->ib->ib, handler, this, cqe);
		if (!made_pd || !made_cq)
			return;
		pd = made_pd.take();
		cq = made_cq.take();
		card->knows(own_cq());
		ready = add(qp, IB_SIGNAL_REQ_WR);
	}
	bool ok() const { return ready; }
	bool add(rdma::QueuePair &into, ib_sig_type signals)
	{
		ib_qp_init_attr attr{};
		attr.cap = {.max_send_wr = depth,
			    .max_recv_wr = depth,
			    .max_send_sge = 2,
			    .max_recv_sge = 2,
			    .max_inline_data = 0};
		attr.sq_sig_type = signals;
		attr.qp_type = IB_QPT_RC;
		auto made = rdma::QueuePair::create(pd, cq, cq, attr);
		if (made)
			into = made.take();
		return made.ok();
	}
	Cq &own_cq() const { return Cq::of(cq->get()); }
	static void handler(ib_cq *, void *context)
	{
		auto &bed = *static_cast<Bed *>(context);
		if (bed.waited)
			bed.noted = bed.waited(bed);
		bed.events.add_relaxed(1);
	}
	int arm(ib_cq_notify_flags flags) const { return cq->request_notification(flags); }
	int send(u64 id, int flags = IB_SEND_SIGNALED, u32 length = 100) const
	{
		ib_sge sge{0x1000, length, 0};
		ib_send_wr wr{};
		wr.wr_id = id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IB_WR_SEND;
		wr.send_flags = flags;
		const ib_send_wr *bad;
		return qp.post_send(&wr, &bad);
	}
	int receive(u64 id, u32 length = 100) const
	{
		ib_sge sge{0x2000, length, 0};
		ib_recv_wr wr{};
		wr.wr_id = id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		const ib_recv_wr *bad;
		return qp.post_recv(&wr, &bad);
	}
	/* Posts a request and completes it. The first QP is number 1 on the card. */
	bool complete(bool solicited = false) const
	{
		return send(1) == 0 && card->complete_send(1, wire::Status::ok, 0, solicited);
	}
	unsigned int count() const { return events.load_relaxed(); }

	/* A function that the event handler calls, if it is set, and its result. */
	unsigned int (*waited)(const Bed &bed) = nullptr;
	unsigned int noted = 0;

	Boxed<Card> card;
	kern::Atomic<unsigned int> events{0};
	kern::Ref<rdma::Pd> pd;
	kern::Ref<rdma::CompletionQueue> cq;
	rdma::QueuePair qp;
	bool ready = false;
};

/* Records the events of a test. */
class EventRecorder final : public EventHandler
{
public:
	explicit EventRecorder(Bed &bed) : bed_(bed)
	{
		if (const auto made = bed.card->rnic->handlers().alloc(this, 1, ~0u >> 1))
			number_ = made.value();
	}
	~EventRecorder()
	{
		Rnic &rnic = *bed_.card->rnic;
		rnic.handlers().erase(number_);
		rnic.flush_events();
	}
	bool ok() const { return number_ != 0; }
	Message event() const
	{
		Message made;
		made.put_opaque(wire::event::user_context, Rnic::context_of(number_, 1));
		made.put(wire::event::resource_type, static_cast<u32>(wire::ResourceType::cq));
		return made;
	}
	void handle_event(const Message &) override
	{
		recorded.fetch_add(1);
		if (on_event)
			on_event(*this, bed_);
	}

	kern::Atomic<unsigned int> recorded{0};
	void (*on_event)(EventRecorder &recorder, Bed &bed) = nullptr;

private:
	Bed &bed_;
	u32 number_ = 0;
};

} // namespace amso1100
