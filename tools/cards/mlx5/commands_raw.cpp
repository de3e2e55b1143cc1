// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands of enhanced IPoIB for send and receive queues (SQ, RQ).
#include <memory>
#include <optional>
#include <utility>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::RqContext;
using hw::mlx5::SqContext;
using hw::mlx5::Status;
using hw::mlx5::WqContext;
namespace raw_command = hw::mlx5::raw_command;

namespace
{

constexpr unsigned kLogSendStride = 6;
constexpr unsigned kLeastReceiveStride = 4; // a data segment
constexpr unsigned kMostReceiveStride = 9;  // limits::kReceiveWqeBytes

const std::uint8_t *queue_context(const Command &command)
{
	return command.in.data() + raw_command::context;
}

PageLayout layout_of(const std::uint8_t *work_queue, std::uint64_t bytes)
{
	return {.log_page_size = WqContext::log_page_size.get(work_queue),
		.page_offset = WqContext::page_offset.get(work_queue),
		.bytes = bytes};
}

ReceiveQueue *named_receive_queue(Core &core, const Command &command)
{
	return core.raw.receive_queues.find(hw::mlx5::object_number.get(command.in.data()));
}

QueuePair *named_send_queue(Core &core, const Command &command)
{
	QueuePair *const queue =
		core.context.queue_pair(hw::mlx5::object_number.get(command.in.data()));
	return queue && queue->is_send_queue ? queue : nullptr;
}

// The transport's other states, for example after a failed request, are the error state of an SQ.
RawState raw_state(const QueuePair &queue)
{
	return queue.state == QpState::reset ? RawState::reset
	       : queue.state == QpState::rts ? RawState::ready
					     : RawState::error;
}

std::optional<RawState> decode_state(std::uint32_t code)
{
	const auto state = static_cast<RawState>(code);
	const bool known =
		state == RawState::reset || state == RawState::ready || state == RawState::error;
	return known ? std::optional(state) : std::nullopt;
}

// Checks the transition of MODIFY_SQ or MODIFY_RQ from @now. A queue in error must be reset before
// it can become ready.
Status next_state(const Command &command, std::uint32_t wanted, RawState now, RawState &next)
{
	const auto before = decode_state(raw_command::current_state.get(command.in.data()));
	const auto after = decode_state(wanted);
	if (!before || !after)
		return Status::bad_parameter;
	if (*before != now || (*after == RawState::ready && now == RawState::error))
		return Status::bad_resource_state;
	next = *after;
	return Status::ok;
}

// Starts a send queue. It sends as the queue pair of its interface. Without an interface it
// executes only requests that send nothing.
void start_sending(Core &core, QueuePair &queue)
{
	queue.sends_as = 0;
	const SendInterface *const tis = core.raw.send_interfaces.find(queue.tis);
	if (const QueuePair *const sender =
		    tis ? core.context.queue_pair(tis->underlay_qpn) : nullptr) {
		queue.sends_as = sender->qpn;
		queue.path = sender->path;
		queue.qkey = sender->qkey;
	}
	queue.state = QpState::init;
	core.transport->qp_created(queue);
	queue.state = QpState::rtr;
	core.transport->qp_changed(queue, QpState::init);
	queue.state = QpState::rts;
	core.transport->qp_changed(queue, QpState::rtr);
}

} // namespace

Status Commands::create_rq(Command &command)
{
	const std::uint8_t *const context = queue_context(command);
	const std::uint8_t *const work_queue = context + RqContext::work_queue;
	const ReceiveQueue::Settings settings{
		.log_size = static_cast<std::uint8_t>(WqContext::log_size.get(work_queue)),
		.log_stride = static_cast<std::uint8_t>(WqContext::log_stride.get(work_queue)),
		.pd = WqContext::pd.get(work_queue),
		.cqn = RqContext::cqn.get(context),
		.user_index = RqContext::user_index.get(context),
		.counter_set = RqContext::counter_set.get(context),
		.record = WqContext::record.get(work_queue)};
	if (settings.log_size > limits::kLogSrqSize || settings.log_stride < kLeastReceiveStride ||
	    settings.log_stride > kMostReceiveStride || settings.record % 8 ||
	    WqContext::type.get(work_queue) != WqContext::cyclic ||
	    RqContext::state.get(context) != static_cast<std::uint32_t>(RawState::reset) ||
	    RqContext::memory_type.get(context) || RqContext::flush_in_error.get(context) ||
	    RqContext::hairpin.get(context) || RqContext::scatter_fcs.get(context))
		return Status::bad_parameter;
	if (!core_.context.completion_queue(settings.cqn))
		return Status::bad_resource;
	if (core_.raw.receive_queues.size() >= std::size_t{1} << limits::kLogRawQueues)
		return Status::exceeds_limit;
	PageList pages;
	if (const Status status =
		    make_pages(command, raw_command::pages,
			       layout_of(work_queue, ReceiveQueue::bytes_of(settings)), pages);
	    status != Status::ok)
		return status;
	const auto number = core_.qpns.take();
	if (!number)
		return Status::no_resources;
	core_.raw.receive_queues.insert(*number, ReceiveQueue(settings, std::move(pages)));
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::modify_rq(Command &command)
{
	ReceiveQueue *const queue = named_receive_queue(core_, command);
	if (!queue)
		return Status::bad_resource;
	RawState next{};
	const Status status = next_state(command, RqContext::state.get(queue_context(command)),
					 queue->state(), next);
	if (status == Status::ok)
		queue->set_state(next);
	return status;
}

Status Commands::destroy_rq(Command &command)
{
	const std::uint32_t number = hw::mlx5::object_number.get(command.in.data());
	if (!core_.raw.receive_queues.remove(number))
		return Status::bad_resource;
	core_.qpns.give(number);
	return Status::ok;
}

Status Commands::query_rq(Command &command)
{
	const ReceiveQueue *const queue = named_receive_queue(core_, command);
	if (!queue)
		return Status::bad_resource;
	const ReceiveQueue::Settings &settings = queue->settings();
	std::uint8_t *const context = command.out.data() + raw_command::context;
	std::uint8_t *const out = context + RqContext::work_queue;
	RqContext::state.set(context, static_cast<std::uint32_t>(queue->state()));
	RqContext::user_index.set(context, settings.user_index);
	RqContext::cqn.set(context, settings.cqn);
	RqContext::counter_set.set(context, settings.counter_set);
	WqContext::type.set(out, WqContext::cyclic);
	WqContext::page_offset.set(out, queue->pages().page_offset());
	WqContext::pd.set(out, settings.pd);
	WqContext::record.set(out, settings.record);
	WqContext::hardware_counter.set(out, queue->next());
	WqContext::log_stride.set(out, settings.log_stride);
	WqContext::log_page_size.set(out, queue->pages().log_page_size());
	WqContext::log_size.set(out, settings.log_size);
	return Status::ok;
}

// The transport sees a send queue as a queue pair without a receive queue.
Status Commands::create_sq(Command &command)
{
	const std::uint8_t *const context = queue_context(command);
	const std::uint8_t *const work_queue = context + SqContext::work_queue;
	auto queue = std::make_unique<QueuePair>();
	queue->is_send_queue = queue->ip_offload = true;
	queue->kind = QpService::ud;
	queue->service = ServiceType::ud;
	queue->has_receive_queue = false;
	queue->pd = WqContext::pd.get(work_queue);
	queue->uar_page = WqContext::uar_page.get(work_queue);
	queue->user_index = SqContext::user_index.get(context);
	queue->send_cqn = SqContext::cqn.get(context);
	queue->record = WqContext::record.get(work_queue);
	queue->log_send_blocks = static_cast<std::uint8_t>(WqContext::log_size.get(work_queue));
	const std::uint32_t interfaces = SqContext::tis_count.get(context);
	queue->tis = interfaces ? SqContext::tis.get(context) : 0;
	if (queue->log_send_blocks > limits::kLogQpSize || queue->record % 8 || interfaces > 1 ||
	    WqContext::log_stride.get(work_queue) != kLogSendStride ||
	    WqContext::type.get(work_queue) != WqContext::cyclic ||
	    SqContext::state.get(context) != static_cast<std::uint32_t>(RawState::reset) ||
	    SqContext::hairpin.get(context))
		return Status::bad_parameter;
	if (!core_.context.completion_queue(queue->send_cqn) ||
	    (interfaces && !core_.raw.send_interfaces.find(queue->tis)))
		return Status::bad_resource;
	if (core_.raw.send_queues >= std::size_t{1} << limits::kLogRawQueues)
		return Status::exceeds_limit;
	if (const Status status =
		    make_pages(command, raw_command::pages,
			       layout_of(work_queue, queue->buffer_bytes()), queue->buffer);
	    status != Status::ok)
		return status;
	const auto number = core_.qpns.take();
	if (!number)
		return Status::no_resources;
	queue->qpn = *number;
	core_.polled.add(*queue);
	core_.context.queue_pairs.insert(*number, std::move(queue));
	++core_.raw.send_queues;
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::modify_sq(Command &command)
{
	QueuePair *const queue = named_send_queue(core_, command);
	if (!queue)
		return Status::bad_resource;
	const RawState now = raw_state(*queue);
	RawState next{};
	if (const Status status =
		    next_state(command, SqContext::state.get(queue_context(command)), now, next);
	    status != Status::ok)
		return status;
	if (next == RawState::reset) {
		core_.retire_qp(*queue);
	} else if (next == RawState::error) {
		// Requests that are posted later are flushed, too.
		if (now == RawState::reset)
			start_sending(core_, *queue);
		const QpState from = std::exchange(queue->state, QpState::err);
		core_.transport->qp_changed(*queue, from);
	} else if (now == RawState::reset) {
		start_sending(core_, *queue);
	}
	return Status::ok;
}

Status Commands::destroy_sq(Command &command)
{
	QueuePair *const queue = named_send_queue(core_, command);
	if (!queue)
		return Status::bad_resource;
	core_.destroy_qp(*queue);
	--core_.raw.send_queues;
	return Status::ok;
}

Status Commands::query_sq(Command &command)
{
	const QueuePair *const queue = named_send_queue(core_, command);
	if (!queue)
		return Status::bad_resource;
	std::uint8_t *const context = command.out.data() + raw_command::context;
	std::uint8_t *const out = context + SqContext::work_queue;
	SqContext::flush_in_error.set(context, 1);
	SqContext::state.set(context, static_cast<std::uint32_t>(raw_state(*queue)));
	SqContext::user_index.set(context, queue->user_index);
	SqContext::cqn.set(context, queue->send_cqn);
	SqContext::tis_count.set(context, queue->tis ? 1 : 0);
	SqContext::tis.set(context, queue->tis);
	WqContext::type.set(out, WqContext::cyclic);
	WqContext::page_offset.set(out, queue->buffer.page_offset());
	WqContext::pd.set(out, queue->pd);
	WqContext::uar_page.set(out, queue->uar_page);
	WqContext::record.set(out, queue->record);
	WqContext::hardware_counter.set(out, core_.transport->progress(*queue).sq_counter);
	WqContext::log_stride.set(out, kLogSendStride);
	WqContext::log_page_size.set(out, queue->buffer.log_page_size());
	WqContext::log_size.set(out, queue->log_send_blocks);
	return Status::ok;
}

} // namespace weft::mlx5
