// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp.hpp"

#include <kern/log.hpp>
#include "cq.hpp"
#include "pd.hpp"

namespace amso1100
{
namespace
{

constexpr u32 usual_reads = 128;
/*
 * These return the size of a slot: the part in front of the segments and the segments, but at least
 * the size of the largest request without segments.
 */
constexpr u32 send_bytes(u32 sges)
{
	const u32 needed = wire::rdma_write::sges + sges * wire::sge::size;
	return needed > wire::rdma_read::size ? needed : u32{wire::rdma_read::size};
}
constexpr u32 receive_bytes(u32 sges)
{
	return wire::receive_request::sges + (sges ? sges : 1) * wire::sge::size;
}

} // namespace

Qp::Qp(Rnic &rnic, ib_qp &verbs) : rnic_(rnic), verbs_(verbs) {}

kern::Result<> Qp::start(ib_qp_init_attr &init)
{
	const ib_qp_cap &cap = init.cap;
	if (init.srq || init.create_flags || cap.max_inline_data)
		return kern::Error{-EINVAL};
	cap_ = cap;
	const auto started = [&]() -> kern::Result<> {
		number_ = KERN_TRY(rnic_.qp_numbers().alloc(1, rnic_.limits().qps));
		for (auto &word : words_)
			word = KERN_TRY(rnic_.words().alloc(kern::Gfp::kernel));
		sq_.depth = cap.max_send_wr + 1;
		rq_.depth = cap.max_recv_wr + 1;
		sq_.max_sge = cap.max_send_sge;
		rq_.max_sge = cap.max_recv_sge;
		sq_.posted = KERN_TRY(kern::make_array<Posted>(kern::Gfp::kernel, sq_.depth));
		rq_.posted = KERN_TRY(kern::make_array<Posted>(kern::Gfp::kernel, rq_.depth));

		Cq &send_cq = Cq::of(init.send_cq), &recv_cq = Cq::of(init.recv_cq);
		QpEntry &entry = *rnic_.qp_entry(number_);
		entry.generation = rnic_.next_generation();
		namespace at = wire::qp_create;
		Message message(wire::MessageId::qp_create);
		message.put(at::sq_word, words_[0].address);
		message.put(at::rq_word, words_[1].address);
		message.put_opaque(at::user_context, Rnic::context_of(number_, entry.generation));
		message.put_opaque(at::rnic_handle, rnic_.handle());
		message.put_opaque(at::sq_cq, send_cq.handle());
		message.put_opaque(at::rq_cq, recv_cq.handle());
		message.put(at::sq_depth, sq_.depth);
		message.put(at::rq_depth, rq_.depth);
		message.put(at::flags, wire::qp_flag::rdma_read | wire::qp_flag::rdma_write |
					       wire::qp_flag::zero_stag |
					       wire::qp_flag::read_response);
		message.put(at::send_sges, sq_.max_sge);
		message.put(at::receive_sges, rq_.max_sge);
		message.put(at::write_sges, sq_.max_sge);
		message.put(at::ord,
			    usual_reads < rnic_.limits().ord ? usual_reads : rnic_.limits().ord);
		message.put(at::ird,
			    usual_reads < rnic_.limits().ird ? usual_reads : rnic_.limits().ird);
		message.put_opaque(at::pd, Pd::of(verbs_.pd).number);
		KERN_TRY(rnic_.channel().call(message, at::size));
		handle_ = message.get_opaque<u32>(at::reply_handle);
		live_ = true;
		KERN_TRY(use_create_reply(message));
		entry.qp = this;
		send_cq.attach(entry, &QpEntry::send_cq);
		recv_cq.attach(entry, &QpEntry::recv_cq);
		return {};
	}();
	if (!started) {
		(void)stop();
		return started;
	}
	verbs_.qp_num = number_;
	return {};
}

kern::Result<> Qp::use_create_reply(const Message &message)
{
	namespace at = wire::qp_create;
	KERN_TRY(set_up_ring(sq_, message, at::reply_sq_depth, at::reply_sq_slot_size,
			     at::reply_sq_index, at::reply_sq_start, send_bytes(sq_.max_sge)));
	return set_up_ring(rq_, message, at::reply_rq_depth, at::reply_rq_slot_size,
			   at::reply_rq_index, at::reply_rq_start, receive_bytes(rq_.max_sge));
}

/*
 * Validates the reply's description of a ring, and maps the ring. The card must provide exactly the
 * requested number of slots, at which the indices wrap. Errors: EPROTO.
 */
kern::Result<> Qp::set_up_ring(WorkRing &ring, const Message &reply, size_t depth_at,
			       size_t bytes_at, size_t index_at, size_t start_at, u32 least_bytes)
{
	const u32 depth = reply.get<u32>(depth_at);
	const u32 start = reply.get<u32>(start_at);
	ring.slot_bytes = reply.get<u32>(bytes_at);
	ring.index = reply.get<u32>(index_at);
	if (depth != ring.depth || ring.slot_bytes < least_bytes || ring.slot_bytes % 8 ||
	    ring.slot_bytes > 4096 || ring.index > wire::most_queue_index ||
	    !fits(rnic_.window().size(), start, wire::shared::size + u64{depth} * ring.slot_bytes))
		return kern::Error{-EPROTO};
	ring.shared = rnic_.window().view(start, wire::shared::size);
	ring.slots = rnic_.window().view(start + wire::shared::size, u64{depth} * ring.slot_bytes);
	return {};
}

u32 Qp::stop()
{
	u32 left = 0;
	if (live_) {
		/* A card that does not respond cannot access memory any more. */
		kern::ignore(end());
		Message message(wire::MessageId::qp_destroy);
		message.put_opaque(wire::rnic_handle, rnic_.handle());
		message.put_opaque(wire::object_handle, handle_);
		kern::ignore(rnic_.channel().call(message, wire::object_request_size));
		if (rnic_.channel().failed())
			give_up();
		live_ = false;
	}
	if (number_) {
		QpEntry &entry = *rnic_.qp_entry(number_);
		if (entry.qp) {
			left += Cq::of(verbs_.send_cq).detach(entry, &QpEntry::send_cq);
			left += Cq::of(verbs_.recv_cq).detach(entry, &QpEntry::recv_cq);
		}
		{
			/* Other users of the QP hold this lock as long as they use it. */
			kern::Guard guard(rnic_.users_lock());
			kern::write_once(entry.qp, static_cast<Qp *>(nullptr));
		}
		rnic_.flush_events();
		rnic_.qp_numbers().free(number_);
		number_ = 0;
	}
	for (auto &word : words_)
		if (word.memory)
			rnic_.words().free(std::exchange(word, {}));
	return left;
}

kern::Result<> Qp::request_state(u32 state, u32 ord, u32 ird)
{
	namespace at = wire::qp_modify;
	Message message(wire::MessageId::qp_modify);
	message.put_opaque(at::rnic_handle, rnic_.handle());
	message.put_opaque(at::qp_handle, handle_);
	message.put(at::next_state, state);
	message.put(at::ord, ord);
	message.put(at::ird, ird);
	message.put(at::sq_depth, wire::no_change);
	message.put(at::rq_depth, wire::no_change);
	return rnic_.channel().call(message, at::size);
}

void Qp::give_up()
{
	/*
	 * A function that has checked for the failure before may still be posting; wait until it
	 * has released the lock.
	 */
	for (WorkRing *const ring : {&sq_, &rq_})
		kern::Guard posting(ring->lock);
	const QpEntry &entry = *rnic_.qp_entry(number_);
	if (!entry.qp)
		return;
	Cq::of(verbs_.send_cq).flush(*this, entry, &QpEntry::send_cq);
	Cq::of(verbs_.recv_cq).flush(*this, entry, &QpEntry::recv_cq);
	(void)advance(StreamEvent::closed, -EIO);
}

/*
 * Moves the QP to the error state. When the card has replied, all posted requests have completed.
 */
kern::Result<> Qp::end()
{
	const auto result = request_state(static_cast<u32>(wire::QpState::error));
	if (rnic_.channel().failed()) {
		give_up();
		return {};
	}
	(void)advance(StreamEvent::end, -ECONNABORTED);
	/* ENOTCONN: the QP was already in this state. */
	return result.error() == -ENOTCONN ? kern::Result<>() : result;
}

kern::Result<> Qp::modify(const ib_qp_attr &attr, int mask)
{
	kern::Guard guard(state_lock_);
	const u32 ord = mask & IB_QP_MAX_QP_RD_ATOMIC ? attr.max_rd_atomic : wire::no_change;
	const u32 ird = mask & IB_QP_MAX_DEST_RD_ATOMIC ? attr.max_dest_rd_atomic : wire::no_change;
	if (ord != wire::no_change || ird != wire::no_change)
		KERN_TRY(request_state(wire::no_change, ord, ird));
	if (!(mask & IB_QP_STATE))
		return {};
	switch (attr.qp_state) {
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		/* The card has no separate states for these; the QP is idle. */
		return {};
	case IB_QPS_RTS:
		return kern::check(stream() == Stream::established ? 0 : -ENOTCONN);
	case IB_QPS_SQD:
		if (!advance(StreamEvent::close))
			return kern::Error{-ENOTCONN};
		return request_state(static_cast<u32>(wire::QpState::closing));
	case IB_QPS_ERR:
		return end();
	case IB_QPS_RESET:
		KERN_TRY(end());
		KERN_TRY(request_state(static_cast<u32>(wire::QpState::idle)));
		Cq::of(verbs_.send_cq).purge(*this);
		Cq::of(verbs_.recv_cq).purge(*this);
		{
			kern::Guard posting(sq_.lock);
			sq_.tail = sq_.head;
		}
		{
			kern::Guard posting(rq_.lock);
			rq_.tail = rq_.head;
		}
		/* Events of the closed stream must not reach the next stream of this QP. */
		rnic_.flush_events();
		(void)advance(StreamEvent::reset);
		return {};
	default:
		return kern::Error{-EOPNOTSUPP};
	}
}

kern::Result<> Qp::query(ib_qp_attr &attr, ib_qp_init_attr &init)
{
	const Stream now = stream();
	attr.qp_state = now == Stream::established ? IB_QPS_RTS
			: now == Stream::closing   ? IB_QPS_SQD
			: now == Stream::ended     ? IB_QPS_ERR
						   : kern::read_once(verbs_.state);
	attr.cur_qp_state = attr.qp_state;
	attr.cap = init.cap = cap_;
	attr.port_num = 1;
	init.send_cq = verbs_.send_cq;
	init.recv_cq = verbs_.recv_cq;
	init.sq_sig_type = verbs_.sq_sig_type;
	init.qp_type = verbs_.qp_type;
	return {};
}

void Qp::dispatch(ib_event_type type)
{
	rdma::dispatch(type, &verbs_);
}

void Qp::handle_event(wire::EventId id, const Message &event)
{
	using enum wire::EventId;
	switch (id) {
	case connect_result:
		if (event.status() == wire::Status::ok)
			(void)advance(StreamEvent::made, 0, &event);
		else
			(void)advance(StreamEvent::refused, errno_of(event.status()), &event);
		return;
	case close_complete:
	case connection_reset:
	case connection_lost:
	case bad_close:
		(void)advance(StreamEvent::closed, -ECONNRESET);
		return;
	case terminate_received:
		(void)advance(StreamEvent::close);
		return dispatch(IB_EVENT_QP_REQ_ERR);
	case tagged_invalid_stag:
	case tagged_bounds_violation:
	case tagged_rights_violation:
	case tagged_invalid_pd:
	case wrap_error:
	case read_not_enabled:
	case write_not_enabled:
	case reads_invalid_stag:
	case reads_bounds_violation:
	case reads_rights_violation:
	case reads_invalid_pd:
	case reads_wrap_error:
		return dispatch(IB_EVENT_QP_ACCESS_ERR);
	case sq_completion_overflow:
	case rq_completion_error:
	case srq_request_error:
	case local_catastrophic:
		return dispatch(IB_EVENT_QP_FATAL);
	case rq_limit_reached:
		return;
	default:
		return dispatch(IB_EVENT_QP_REQ_ERR);
	}
}

} // namespace amso1100
