// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for event, completion and shared receive queues.
#include <algorithm>

#include "cards/mlx4/core.hpp"

namespace weft::mlx4
{

using hw::mlx4::CqContext;
using hw::mlx4::EqContext;
using hw::mlx4::InitHca;
using hw::mlx4::SrqContext;
using hw::mlx4::Status;

namespace
{

// Checks @number, the number of a new object, in a table of @size entries, whose first numbers are
// reserved for firmware.
Status check_number(std::uint32_t number, std::uint32_t size, unsigned log_reserved)
{
	if (number >= size)
		return Status::bad_index;
	return number < 1u << log_reserved ? Status::bad_resource : Status::ok;
}

EventQueue::Settings decode(const EqContext &context)
{
	const std::uint8_t *const in = context.bytes;
	EventQueue::Settings settings;
	settings.buffer.mtt_offset = EqContext::mtt_offset.get(in);
	settings.buffer.page_shift =
		static_cast<std::uint8_t>(12 + EqContext::log_page_size.get(in));
	settings.buffer.page_offset = EqContext::page_offset.get(in) * 32;
	settings.log_size = static_cast<std::uint8_t>(EqContext::log_size.get(in));
	settings.vector = static_cast<std::uint16_t>(EqContext::vector.get(in));
	settings.overrun_ignore = EqContext::overrun_ignore.get(in);
	settings.state = EqContext::state.get(in);
	return settings;
}

EqContext encode(const EventQueue &queue)
{
	const EventQueue::Settings &settings = queue.settings();
	EqContext context{};
	EqContext::status.set(context.bytes, queue.status());
	EqContext::overrun_ignore.set(context.bytes, settings.overrun_ignore);
	EqContext::state.set(context.bytes, queue.state());
	EqContext::page_offset.set(context.bytes, settings.buffer.page_offset / 32);
	EqContext::log_size.set(context.bytes, settings.log_size);
	EqContext::vector.set(context.bytes, settings.vector);
	EqContext::log_page_size.set(context.bytes, settings.buffer.page_shift - 12u);
	EqContext::mtt_offset.set(context.bytes, settings.buffer.mtt_offset);
	EqContext::consumer_index.set(context.bytes, queue.consumer());
	EqContext::producer_index.set(context.bytes, queue.producer());
	return context;
}

} // namespace

Status Commands::map_eq(Command &command)
{
	const std::uint32_t eqn = hw::mlx4::map_eq_eqn.of(command.in_modifier);
	if (hw::mlx4::map_eq_unmap.of(command.in_modifier)) {
		core_.events.unmap(command.in_param, eqn);
		return Status::ok;
	}
	if (!core_.events.find(eqn))
		return Status::bad_resource;
	core_.events.map(command.in_param, eqn);
	return Status::ok;
}

Status Commands::sw2hw_eq(Command &command)
{
	const std::uint32_t eqn = command.in_modifier;
	if (const Status status = check_number(eqn, core_.events.size(), limits::kLogReservedEqs);
	    status != Status::ok)
		return status;
	if (core_.events.find(eqn))
		return Status::bad_resource_state;
	const auto context = context_of<EqContext>(command);
	if (EqContext::log_size.get(context.bytes) > limits::kLogMaxEqSize)
		return Status::exceeds_limit;
	if (EqContext::log_page_size.get(context.bytes) > limits::kMaxLogPageSize ||
	    EqContext::vector.get(context.bytes) >= limits::kVectors)
		return Status::bad_parameter;
	if (!backed(InitHca::eqc_base, eqn, limits::kEqcEntry))
		return Status::icm_error;
	if (core_.events.create(core_.memory, eqn, decode(context)).initialise_buffer())
		return Status::ok;
	core_.events.remove(eqn);
	return Status::bad_parameter;
}

Status Commands::hw2sw_eq(Command &command)
{
	if (const auto queue = core_.events.remove(command.in_modifier))
		put(command, encode(*queue));
	return Status::ok;
}

Status Commands::query_eq(Command &command)
{
	const EventQueue *const queue = core_.events.find(command.in_modifier);
	if (!queue)
		return Status::bad_resource_state;
	put(command, encode(*queue));
	return Status::ok;
}

Status Commands::sw2hw_cq(Command &command)
{
	auto &queues = core_.context.completion_queues;
	const std::uint32_t cqn = command.in_modifier;
	if (command.op_modifier != 0) // buffers that software has initialised are not supported
		return Status::bad_opcode;
	if (const Status status = check_number(cqn, queues.size(), limits::kLogReservedCqs);
	    status != Status::ok)
		return status;
	if (queues.find(cqn))
		return Status::bad_resource_state;
	if (queues.objects() >= limits::kMostCqs)
		return Status::exceeds_limit;
	const auto context = context_of<CqContext>(command);
	if (CqContext::log_size.get(context.bytes) > limits::kLogMaxCqSize)
		return Status::exceeds_limit;
	if (CqContext::log_page_size.get(context.bytes) > limits::kMaxLogPageSize ||
	    CqContext::uar_page.get(context.bytes) >= limits::kUarPages)
		return Status::bad_parameter;
	if (!core_.events.find(CqContext::eqn.get(context.bytes)))
		return Status::bad_resource;
	if (!backed(InitHca::cqc_base, cqn, limits::kCqcEntry))
		return Status::icm_error;
	auto queue = std::make_unique<CompletionQueue>(
		CompletionQueue::Services{core_.memory, core_.events, core_.context.loop}, cqn,
		context, &core_.faults);
	if (!queue->initialise_buffer())
		return Status::bad_parameter;
	queues.insert(cqn, std::move(queue));
	return Status::ok;
}

Status Commands::hw2sw_cq(Command &command)
{
	const std::uint32_t cqn = command.in_modifier;
	if (const CompletionQueue *queue = core_.context.completion_queue(cqn)) {
		put(command, queue->context());
		core_.context.completion_queues.remove(cqn);
	}
	return Status::ok;
}

Status Commands::query_cq(Command &command)
{
	const CompletionQueue *const queue = core_.context.completion_queue(command.in_modifier);
	if (!queue)
		return Status::bad_resource_state;
	put(command, queue->context());
	return Status::ok;
}

Status Commands::modify_cq(Command &command)
{
	CompletionQueue *const queue = core_.context.completion_queue(command.in_modifier);
	if (!queue)
		return Status::bad_resource_state;
	const auto context = context_of<CqContext>(command);
	if (command.op_modifier == hw::mlx4::modify_cq_moderation) {
		queue->set_moderation(
			static_cast<std::uint16_t>(CqContext::moderation_count.get(context.bytes)),
			static_cast<std::uint16_t>(
				CqContext::moderation_period.get(context.bytes)));
		return Status::ok;
	}
	if (command.op_modifier != hw::mlx4::modify_cq_resize)
		return Status::bad_opcode;
	const std::uint32_t log_size = CqContext::log_size.get(context.bytes);
	const std::uint32_t log_page = CqContext::log_page_size.get(context.bytes);
	if (log_size > limits::kLogMaxCqSize)
		return Status::exceeds_limit;
	if (log_page > limits::kMaxLogPageSize)
		return Status::bad_parameter;
	const QueueBuffer buffer{CqContext::mtt_offset.get(context.bytes),
				 static_cast<std::uint8_t>(12 + log_page),
				 CqContext::page_offset.get(context.bytes) * 32};
	switch (queue->resize(buffer, log_size)) {
	case CompletionQueue::ResizeResult::done:
		return Status::ok;
	case CompletionQueue::ResizeResult::too_small:
		return Status::bad_size;
	case CompletionQueue::ResizeResult::no_memory:
		break;
	}
	return Status::bad_parameter;
}

Status Commands::sw2hw_srq(Command &command)
{
	auto &queues = core_.context.shared_receive_queues;
	const std::uint32_t srqn = command.in_modifier;
	if (const Status status = check_number(srqn, queues.size(), limits::kLogReservedSrqs);
	    status != Status::ok)
		return status;
	if (queues.find(srqn))
		return Status::bad_resource_state;
	if (queues.objects() >= limits::kMostSrqs)
		return Status::exceeds_limit;
	const auto context = context_of<SrqContext>(command);
	// The next-WQE link needs 16 bytes, and a data segment another 16.
	if (SrqContext::log_page_size.get(context.bytes) > limits::kMaxLogPageSize ||
	    SrqContext::log_stride.get(context.bytes) == 0)
		return Status::bad_parameter;
	if (!backed(InitHca::srqc_base, srqn, limits::kSrqcEntry))
		return Status::icm_error;
	queues.insert(srqn, std::make_unique<SharedReceiveQueue>(core_.memory, core_.events,
								 &core_.faults, srqn, context));
	return Status::ok;
}

} // namespace weft::mlx4
