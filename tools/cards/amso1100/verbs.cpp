// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/verbs.hpp"

#include <algorithm>
#include <utility>

#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/bytes.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::MessageId;
using wire::QpState;
using wire::Status;

namespace
{

// Number of queue pairs per slice of the loop.
constexpr unsigned kWorkRequestsPerSlice = 16;

} // namespace

Verbs::Verbs(PciHost &host, MessageQueues &queues, tcp::Stack &stack, std::uint64_t context,
	     bool privileged)
    : host_(host), queues_(queues), stack_(stack), context_(context), privileged_(privileged),
      connections_(host.loop()), endpoints_(host.loop(), queues, stack, connections_, context)
{
}

bool Verbs::knows(MessageId id)
{
	switch (id) {
	case MessageId::cq_create:
	case MessageId::cq_destroy:
	case MessageId::qp_connect:
	case MessageId::qp_create:
	case MessageId::qp_modify:
	case MessageId::qp_destroy:
	case MessageId::stag_alloc:
	case MessageId::mr_register:
	case MessageId::mr_page_list:
	case MessageId::stag_dealloc:
	case MessageId::listen_create:
	case MessageId::listen_destroy:
	case MessageId::request_accept:
	case MessageId::request_reject:
		return true;
	default:
		return false;
	}
}

std::size_t Verbs::rnic_handle(MessageId id)
{
	switch (id) {
	case MessageId::cq_create:
		return wire::cq_create::rnic_handle;
	case MessageId::qp_create:
		return wire::qp_create::rnic_handle;
	case MessageId::qp_modify:
		return wire::qp_modify::rnic_handle;
	case MessageId::mr_register:
		return wire::mr_register::rnic_handle;
	case MessageId::listen_create:
		return wire::listen_create::rnic_handle;
	default:
		return wire::rnic_handle;
	}
}

Verbs::Answer Verbs::carry_out(const Message &request, Message &reply)
{
	const auto object = load_be<std::uint32_t>(request, wire::object_handle);
	switch (static_cast<MessageId>(request[wire::header::id])) {
	case MessageId::cq_create:
		return create_cq(request, reply);
	case MessageId::cq_destroy:
		return destroy_cq(request);
	case MessageId::qp_create:
		return create_qp(request, reply);
	case MessageId::qp_modify:
		return modify_qp(request, reply);
	case MessageId::qp_destroy:
		return destroy_qp(request);
	case MessageId::qp_connect:
		return connect(request);
	case MessageId::stag_alloc:
		return {regions_.allocate(request, reply)};
	case MessageId::mr_register:
		return {regions_.add(request, reply)};
	case MessageId::mr_page_list:
		return {regions_.add_pages(request)};
	case MessageId::stag_dealloc:
		return {regions_.remove(object)};
	case MessageId::listen_create:
		return {endpoints_.listen(request, reply)};
	case MessageId::listen_destroy:
		if (const auto last = endpoints_.destroy(object))
			return {.after = *last};
		return {Status::invalid_endpoint};
	case MessageId::request_accept:
		return {endpoints_.accept(request, qps_.find(object))};
	case MessageId::request_reject:
		return {endpoints_.reject(object)};
	default:
		return {Status::not_implemented};
	}
}

Verbs::Answer Verbs::create_cq(const Message &request, Message &reply)
{
	namespace field = wire::cq_create;
	const CompletionQueue::Config config{
		.producer_word = load_be<std::uint64_t>(request, field::producer_word),
		.pool = load_be<std::uint64_t>(request, field::pool),
		.user_context = load_be<std::uint64_t>(request, field::user_context),
		.slot_size = load_be<std::uint32_t>(request, field::slot_size),
		.depth = load_be<std::uint32_t>(request, field::depth)};
	if (config.depth < 2 || config.depth > CompletionQueue::kMostDepth)
		return {Status::invalid_cq_depth};
	if (config.slot_size < wire::completion::size || config.slot_size > wire::message_size)
		return {Status::invalid_length};
	CompletionQueue *const cq = cqs_.make(host_, queues_, config);
	if (!cq)
		return {Status::insufficient_resources};
	store_be<std::uint32_t>(reply, field::reply_index, cq->index());
	store_be<std::uint32_t>(reply, field::reply_shared,
				static_cast<std::uint32_t>(cq->shared_offset()));
	store_be<std::uint32_t>(reply, field::reply_handle, cq->handle);
	return {};
}

Verbs::Answer Verbs::destroy_cq(const Message &request)
{
	CompletionQueue *const cq = cqs_.find(load_be<std::uint32_t>(request, wire::object_handle));
	if (!cq)
		return {Status::invalid_cq};
	if (cq->users)
		return {Status::in_use};
	const std::uint64_t last = cq->last_event;
	cqs_.erase(cq->handle);
	return {.after = last};
}

Verbs::Answer Verbs::create_qp(const Message &request, Message &reply)
{
	namespace field = wire::qp_create;
	const auto word = [&](std::size_t at) { return load_be<std::uint32_t>(request, at); };
	CompletionQueue *const sq_cq = cqs_.find(word(field::sq_cq));
	CompletionQueue *const rq_cq = cqs_.find(word(field::rq_cq));
	if (!sq_cq || !rq_cq)
		return {Status::invalid_cq};
	const std::uint32_t sq_depth = word(field::sq_depth), rq_depth = word(field::rq_depth);
	const auto fits = [](std::uint32_t depth) {
		return depth >= 2 && depth <= QueuePair::kMostDepth;
	};
	if (!fits(sq_depth))
		return {Status::invalid_sq_depth};
	if (!fits(rq_depth))
		return {Status::invalid_rq_depth};
	if (word(field::send_sges) > kMostSges)
		return {Status::invalid_send_sgl_depth};
	if (word(field::receive_sges) > kMostSges)
		return {Status::invalid_receive_sgl_depth};
	if (word(field::write_sges) > kMostSges)
		return {Status::invalid_write_sgl_depth};
	if (word(field::srq))
		return {Status::invalid_srq};
	if (qps_.size() == QueuePair::kMost)
		return {Status::insufficient_resources};
	const auto sq_start = window_.allocate(WorkRing::size(sq_depth, kSendSlot));
	if (!sq_start)
		return {Status::insufficient_resources};
	const auto rq_start = window_.allocate(WorkRing::size(rq_depth, kReceiveSlot));
	if (!rq_start) {
		window_.free(*sq_start);
		return {Status::insufficient_resources};
	}
	const QueuePair::Config config{.user_context =
					       load_be<std::uint64_t>(request, field::user_context),
				       .sq_cq = *sq_cq,
				       .rq_cq = *rq_cq,
				       .sq = WorkRing(window_, *sq_start, sq_depth, kSendSlot),
				       .rq = WorkRing(window_, *rq_start, rq_depth, kReceiveSlot),
				       .send_sges = word(field::send_sges),
				       .receive_sges = word(field::receive_sges),
				       .write_sges = word(field::write_sges),
				       .flags = word(field::flags),
				       .pd = word(field::pd),
				       .ord = std::min(word(field::ord), QueuePair::kMostReads),
				       .ird = std::min(word(field::ird), QueuePair::kMostReads)};
	QueuePair &qp = *qps_.make(
		QueuePair::Card{queues_, regions_, connections_, context_, privileged_}, config);
	// Initialise the words in host memory, which have arbitrary values before. From now on,
	// only the host changes them.
	for (const std::size_t at : {field::sq_word, field::rq_word})
		queues_.put_word(load_be<std::uint64_t>(request, at), 0);
	const std::pair<std::size_t, std::uint64_t> values[] = {
		{field::reply_sq_depth, sq_depth},
		{field::reply_rq_depth, rq_depth},
		{field::reply_send_sges, config.send_sges},
		{field::reply_receive_sges, config.receive_sges},
		{field::reply_write_sges, config.write_sges},
		{field::reply_ord, config.ord},
		{field::reply_ird, config.ird},
		{field::reply_sq_slot_size, kSendSlot},
		{field::reply_sq_index, qp.sq_index()},
		{field::reply_sq_start, *sq_start},
		{field::reply_rq_slot_size, kReceiveSlot},
		{field::reply_rq_index, qp.rq_index()},
		{field::reply_rq_start, *rq_start},
		{field::reply_handle, qp.handle}};
	for (const auto &[at, value] : values)
		store_be<std::uint32_t>(reply, at, static_cast<std::uint32_t>(value));
	return {};
}

Verbs::Answer Verbs::modify_qp(const Message &request, Message &reply)
{
	namespace field = wire::qp_modify;
	const auto word = [&](std::size_t at) { return load_be<std::uint32_t>(request, at); };
	QueuePair *const qp = qps_.find(word(field::qp_handle));
	if (!qp)
		return {Status::invalid_qp};
	const std::uint32_t next = word(field::next_state);
	Answer answer;
	if (next != wire::no_change) {
		const bool could_notify =
			qp->state() == QpState::connecting || qp->state() == QpState::closing;
		answer.status = qp->modify(static_cast<QpState>(next));
		// The host must read the events of this change before the reply, and all events of
		// a stream before another stream can start.
		if ((could_notify && qp->state() == QpState::error) || qp->state() == QpState::idle)
			answer.after = qp->last_event();
	}
	if (answer.status == Status::ok)
		qp->set_reads(word(field::ord), word(field::ird));
	store_be<std::uint32_t>(reply, field::reply_ord, qp->config().ord);
	store_be<std::uint32_t>(reply, field::reply_ird, qp->config().ird);
	store_be<std::uint32_t>(reply, field::reply_sq_depth, qp->config().sq.depth());
	store_be<std::uint32_t>(reply, field::reply_rq_depth, qp->config().rq.depth());
	return answer;
}

// Destroys a queue pair. Outstanding requests are not completed. The host reads pending events of
// the queue pair before the reply.
Verbs::Answer Verbs::destroy_qp(const Message &request)
{
	QueuePair *const qp = qps_.find(load_be<std::uint32_t>(request, wire::object_handle));
	if (!qp)
		return {Status::invalid_qp};
	const std::uint64_t last = qp->leave();
	const std::uint64_t sq = qp->config().sq.start(), rq = qp->config().rq.start();
	qps_.erase(qp->handle);
	window_.free(sq);
	window_.free(rq);
	return {.after = last};
}

Verbs::Answer Verbs::connect(const Message &request)
{
	namespace field = wire::qp_connect;
	const Answer none{.none = true};
	QueuePair *const qp = qps_.find(load_be<std::uint32_t>(request, field::qp_handle));
	if (!qp)
		return none;
	const auto length = load_be<std::uint32_t>(request, field::private_length);
	if (length > wire::most_private_data) {
		qp->refuse_to_connect(Status::connection_reset);
		return none;
	}
	iwarp::Bytes data(length);
	std::ranges::copy(std::span(request).subspan(field::private_data, length),
			  std::as_writable_bytes(std::span(data)).begin());
	qp->connect(stack_,
		    {load_be<std::uint32_t>(request, field::remote_address),
		     load_be<std::uint16_t>(request, field::remote_port)},
		    std::move(data));
	return none;
}

void Verbs::ring(std::uint32_t hint)
{
	const std::uint32_t index = hint >> wire::hint_index_shift & wire::most_queue_index;
	const std::uint32_t place = (index - QueuePair::kFirstIndex) / 2;
	if (index < QueuePair::kFirstIndex || !qps_.at(place) ||
	    std::exchange(is_rung_[place], true))
		return;
	rung_.push_back(static_cast<std::uint16_t>(place));
}

bool Verbs::serve()
{
	for (unsigned i = 0; i < kWorkRequestsPerSlice && !rung_.empty(); ++i) {
		const std::uint16_t place = rung_.front();
		rung_.pop_front();
		is_rung_[place] = false;
		if (QueuePair *const qp = qps_.at(place))
			qp->serve();
	}
	return !rung_.empty();
}

CompletionQueue *Verbs::shared_at(std::uint64_t offset, std::size_t size) const
{
	constexpr std::uint64_t end =
		CompletionQueue::kShared + CompletionQueue::kMost * wire::shared::size;
	const std::uint64_t within = offset - CompletionQueue::kShared;
	if (offset < CompletionQueue::kShared || offset >= end ||
	    within % wire::shared::size + size > wire::shared::size)
		return nullptr;
	return cqs_.at(within / wire::shared::size);
}

void Verbs::read(std::uint64_t offset, std::span<std::byte> data)
{
	if (const CompletionQueue *const cq = shared_at(offset, data.size()))
		cq->read(offset % wire::shared::size, data);
	else if (offset >= QueueWindow::kStart)
		window_.read(offset, data);
}

void Verbs::write(std::uint64_t offset, std::span<const std::byte> data)
{
	if (CompletionQueue *const cq = shared_at(offset, data.size()))
		cq->write(offset % wire::shared::size, data);
	else if (offset >= QueueWindow::kStart)
		window_.write(offset, data);
}

} // namespace weft::amso1100
