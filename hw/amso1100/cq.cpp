// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cq.hpp"

#include <kern/log.hpp>
#include "qp.hpp"

namespace amso1100
{

Cq::Cq(Rnic &rnic, ib_cq &verbs) : rnic_(rnic), verbs_(verbs) {}

Cq::~Cq()
{
	stop();
}

kern::Result<> Cq::start(const ib_cq_init_attr &attr)
{
	if (attr.flags || attr.cqe == 0 || attr.cqe > rnic_.limits().cq_depth)
		return kern::Error{-EINVAL};
	/* A full ring cannot be distinguished from an empty one, so it has one more slot. */
	depth_ = attr.cqe + 1;
	ring_ = KERN_TRY(kern::DmaBuffer::create(rnic_.dma_device(),
						 size_t{depth_} * wire::completion_slot_size));
	{
		auto saved = KERN_TRY(kern::make_array<SavedCompletion>(kern::Gfp::kernel, depth_));
		kern::Guard guard(lock_);
		saved_ = std::move(saved);
	}
	word_ = KERN_TRY(rnic_.words().alloc(kern::Gfp::kernel));
	number_ = KERN_TRY(rnic_.handlers().alloc(this, 1, ~0u >> 1));

	namespace at = wire::cq_create;
	Message message(wire::MessageId::cq_create);
	message.put(at::producer_word, word_.address);
	message.put_opaque(at::user_context, Rnic::context_of(number_, rnic_.next_generation()));
	message.put(at::pool, ring_.address());
	message.put_opaque(at::rnic_handle, rnic_.handle());
	message.put(at::slot_size, u32{wire::completion_slot_size});
	message.put(at::depth, depth_);
	KERN_TRY(rnic_.channel().call(message, at::size));
	handle_ = message.get_opaque<u32>(at::reply_handle);
	live_ = true;
	index_ = message.get<u32>(at::reply_index);
	const u32 shared = message.get<u32>(at::reply_shared);
	if (index_ < wire::least_queue_index || index_ > wire::most_queue_index ||
	    !fits(rnic_.window().size(), shared, wire::shared::size))
		return kern::Error{-EPROTO};
	shared_ = rnic_.window().view(shared, wire::shared::size);
	const auto named = rnic_.queues().insert(index_, this);
	if (!named) {
		index_ = 0;
		return named;
	}
	verbs_.cqe = static_cast<int>(attr.cqe);
	return {};
}

void Cq::stop()
{
	if (live_) {
		Message message(wire::MessageId::cq_destroy);
		message.put_opaque(wire::rnic_handle, rnic_.handle());
		message.put_opaque(wire::object_handle, handle_);
		/*
		 * This request cannot fail. A card that does not respond cannot access memory any
		 * more.
		 */
		kern::ignore(rnic_.channel().call(message, wire::object_request_size));
	}
	live_ = false;
	if (index_ >= wire::least_queue_index && rnic_.queues().load(index_) == this)
		rnic_.queues().erase(index_);
	if (number_)
		rnic_.handlers().erase(number_);
	number_ = index_ = 0;
	rnic_.function().synchronize();
	rnic_.flush_events();
	if (word_.memory)
		rnic_.words().free(word_);
	word_ = {};
}

u32 Cq::produced()
{
	lock_.assert_held();
	if (given_up_)
		return end_;
	const u16 end =
		swap_be(__atomic_load_n(static_cast<const u16 *>(word_.memory), __ATOMIC_ACQUIRE));
	return end < depth_ ? end : consumer_;
}

Qp *Cq::qp_of(const u8 *entry)
{
	u64 context;
	__builtin_memcpy(&context, entry + wire::completion::qp_context, sizeof(context));
	const QpEntry *named = rnic_.qp_entry(static_cast<u32>(context));
	if (!named)
		return nullptr;
	const bool receive = entry[wire::header::id] == static_cast<u8>(wire::WorkId::receive);
	if (kern::read_once(receive ? named->recv_cq : named->send_cq) != this ||
	    named->generation != context >> 32)
		return nullptr;
	return named->qp;
}

/* entry: a copy, so that the card cannot change it meanwhile. */
bool Cq::translate(const u8 *entry, ib_wc &wc)
{
	Qp *const qp = qp_of(entry);
	if (!qp)
		return false;
	wc = {};
	wc.qp = &qp->verbs();
	return qp->complete(entry, wc);
}

int Cq::poll(int count, ib_wc *wc)
{
	kern::Guard guard(lock_);
	const u32 first = consumer_, end = produced();
	int got = 0;
	while (got < count && consumer_ != end) {
		SavedCompletion &saved = saved_[consumer_];
		bool good;
		if (saved.state == SlotState::card) [[likely]] {
			u8 entry[wire::completion::size];
			__builtin_memcpy(entry, slot(consumer_), sizeof(entry));
			good = translate(entry, wc[got]);
			invalid_entries_ += !good;
		} else {
			good = saved.state == SlotState::saved;
			wc[got] = saved.wc;
			saved.state = SlotState::card;
		}
		consumer_ = next_index(consumer_);
		got += good;
	}
	if (consumer_ != first)
		write_be16(shared_, wire::shared::index, static_cast<u16>(consumer_));
	if (consumer_ != first && std::exchange(flush_pending_, false)) [[unlikely]]
		rnic_.flush_more();
	return got;
}

int Cq::peek(int count)
{
	kern::Guard guard(lock_);
	const u32 found = (produced() + depth_ - consumer_) % depth_;
	return found < static_cast<u32>(count) ? static_cast<int>(found) : count;
}

/*
 * NEXT_COMP replaces an earlier SOLICITED request, but not the other way round (NOTIFY-07), because
 * the card only stores one request.
 */
int Cq::request_notify(ib_cq_notify_flags flags)
{
	if (!rdma::valid_notify_flags(flags))
		return -EINVAL;
	const Armed wanted = flags & IB_CQ_NEXT_COMP ? Armed::next : Armed::solicited;
	kern::Guard guard(lock_);
	if (armed_ < wanted) {
		armed_ = wanted;
		shared_.write8(wire::shared::notification,
			       static_cast<u8>(wanted == Armed::next
						       ? wire::Notification::next
						       : wire::Notification::next_solicited));
		shared_.write8(wire::shared::armed, wire::armed_yes | wire::armed_wait);
	}
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	/*
	 * When this read returns, the card has received the write. Completions from before are in
	 * the queue, and later ones raise the event.
	 */
	(void)shared_.read8(wire::shared::armed);
	missed_event_checks_++;
	return produced() != consumer_;
}

void Cq::hint()
{
	{
		kern::Guard guard(lock_);
		armed_ = Armed::no;
	}
	rdma::complete(&verbs_);
}

/* Whatever the event is, completions are lost. */
void Cq::handle_event(const Message &)
{
	rdma::dispatch(IB_EVENT_CQ_ERR, &verbs_);
}

template<class Body>
void Cq::for_each(const Qp &qp, Body body)
{
	lock_.assert_held();
	for (u32 at = consumer_, end = produced(); at != end; at = next_index(at)) {
		SavedCompletion &saved = saved_[at];
		if (saved.state != SlotState::card)
			continue;
		u8 entry[wire::completion::size];
		__builtin_memcpy(entry, slot(at), sizeof(entry));
		if (qp_of(entry) == &qp)
			body(entry, saved);
	}
}

void Cq::attach(QpEntry &entry, const Cq *QpEntry::*place)
{
	kern::Guard guard(lock_);
	kern::write_once(entry.*place, this);
}

u32 Cq::detach(QpEntry &entry, const Cq *QpEntry::*place)
{
	kern::Guard guard(lock_);
	Qp &qp = *entry.qp;
	u32 left = 0;
	save(qp);
	for (u32 at = consumer_, end = produced(); at != end; at = next_index(at)) {
		SavedCompletion &saved = saved_[at];
		if (saved.state != SlotState::saved || saved.left || saved.wc.qp != &qp.verbs())
			continue;
		saved.wc.qp = rdma::remaining_qp(verbs_, qp.verbs());
		saved.left = true;
		left++;
	}
	kern::write_once(entry.*place, static_cast<const Cq *>(nullptr));
	return left;
}

void Cq::save(Qp &qp)
{
	for_each(qp, [&](const u8 *bytes, SavedCompletion &saved) {
		lock_.assert_held();
		saved.state = translate(bytes, saved.wc) ? SlotState::saved : SlotState::dropped;
		saved.left = false;
	});
}

void Cq::flush(Qp &qp, const QpEntry &entry, const Cq *QpEntry::*place)
{
	kern::Guard guard(lock_);
	if (!given_up_) {
		end_ = produced();
		given_up_ = true;
	}
	/* The completions of a detached QP, which is being destroyed, would never be removed. */
	if (kern::read_once(entry.*place) != this)
		return;
	const bool receives = place == &QpEntry::recv_cq;
	save(qp);
	ib_wc wc;
	while (next_index(end_) != consumer_) {
		if (!qp.flush_one(receives, wc))
			return;
		saved_[end_] = {SlotState::saved, false, wc};
		end_ = next_index(end_);
	}
	flush_pending_ = true;
}

void Cq::purge(const Qp &qp)
{
	kern::Guard guard(lock_);
	for_each(qp, [&](const u8 *, SavedCompletion &saved) { saved.state = SlotState::dropped; });
}

} // namespace amso1100
