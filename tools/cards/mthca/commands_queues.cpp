// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for event, completion and shared receive queues.
#include <algorithm>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

using hw::mthca::CqContext;
using hw::mthca::EqContext;
using hw::mthca::ResizeCq;
using hw::mthca::SrqContext;
using hw::mthca::Status;

Status Commands::map_eq(Command &command)
{
	const std::uint32_t eqn =
		hw::mellanox_icm::map_eq_eqn.of(command.in_modifier) % hw::mthca::eqs;
	if (hw::mellanox_icm::map_eq_unmap.of(command.in_modifier)) {
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
	if (eqn >= core_.events.size())
		return Status::bad_index;
	if (core_.events.find(eqn))
		return Status::bad_resource_state;
	const auto context = context_of<EqContext>(command);
	const std::uint32_t vector =
		EqContext::by_message.get(context.bytes) ? EqContext::vector.get(context.bytes) : 0;
	if (EqContext::log_size.get(context.bytes) > limits::kLogMaxEqSize)
		return Status::exceeds_limit;
	if (vector >= limits::kVectors)
		return Status::bad_parameter;
	core_.events.create(
		core_.memory, eqn,
		{.buffer = QueueBuffer::keyed(EqContext::lkey.get(context.bytes),
					      EqContext::pd.get(context.bytes),
					      EqContext::start.get(context.bytes)),
		 .log_size = static_cast<std::uint8_t>(EqContext::log_size.get(context.bytes)),
		 .owner = OwnerRule::plain,
		 .index_mask = 0xffffffff,
		 .vector = static_cast<std::uint16_t>(vector),
		 .overrun_ignore = EqContext::overrun_ignore.get(context.bytes) != 0,
		 .state = EqContext::state.get(context.bytes)});
	return Status::ok;
}

Status Commands::hw2sw_eq(Command &command)
{
	const auto queue = core_.events.remove(command.in_modifier);
	if (!queue || command.out.empty())
		return Status::ok;
	EqContext context{};
	EqContext::status.set(context.bytes, queue->status());
	EqContext::state.set(context.bytes, queue->state());
	EqContext::consumer_index.set(context.bytes, queue->consumer());
	EqContext::producer_index.set(context.bytes, queue->producer());
	put(command, context);
	return Status::ok;
}

Status Commands::sw2hw_cq(Command &command)
{
	auto &queues = core_.context.completion_queues;
	const std::uint32_t cqn = command.in_modifier & 0xffffff;
	// Numbers have additional upper bits, by which drivers distinguish an old queue from a new
	// one.
	if (queues.slot(cqn) < 1u << limits::kLogReservedCqs)
		return Status::bad_resource;
	if (queues.find(cqn))
		return Status::bad_resource_state;
	if (queues.objects() >= limits::kMostCqs)
		return Status::exceeds_limit;
	const auto context = context_of<CqContext>(command);
	const std::uint32_t page = CqContext::uar_page.get(context.bytes);
	if (CqContext::log_size.get(context.bytes) > limits::kLogMaxCqSize)
		return Status::exceeds_limit;
	if (page >= limits::kUarPages)
		return Status::bad_parameter;
	if (!core_.events.find(CqContext::eqn.get(context.bytes)))
		return Status::bad_resource;
	queues.insert(
		cqn,
		std::make_unique<CompletionQueue>(
			CompletionQueue::Services{core_.memory, core_.events, core_.context.loop},
			cqn, context,
			core_.context.record(page, CqContext::ci_record.get(context.bytes)),
			core_.faults));
	return Status::ok;
}

Status Commands::hw2sw_cq(Command &command)
{
	const std::uint32_t cqn = command.in_modifier & 0xffffff;
	if (const CompletionQueue *const queue = core_.context.completion_queue(cqn)) {
		put(command, queue->context());
		core_.context.completion_queues.remove(cqn);
	}
	return Status::ok;
}

Status Commands::query_cq(Command &command)
{
	const CompletionQueue *const queue =
		core_.context.completion_queue(command.in_modifier & 0xffffff);
	if (!queue)
		return Status::bad_resource_state;
	put(command, queue->context());
	return Status::ok;
}

// Resizes a CQ. Refuses a size that is too small with a status that the driver converts to EINVAL,
// because neither the driver nor the library checks it.
Status Commands::resize_cq(Command &command)
{
	CompletionQueue *const queue =
		core_.context.completion_queue(command.in_modifier & 0xffffff);
	if (!queue)
		return Status::bad_resource_state;
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t log_size = ResizeCq::log_size.get(in);
	if (log_size > limits::kLogMaxCqSize)
		return Status::exceeds_limit;
	return queue->resize(ResizeCq::lkey.get(in), ResizeCq::start.get(in), log_size)
		       ? Status::ok
		       : Status::bad_parameter;
}

Status Commands::sw2hw_srq(Command &command)
{
	auto &queues = core_.context.shared_receive_queues;
	const std::uint32_t srqn = command.in_modifier;
	if (srqn >= queues.size())
		return Status::bad_index;
	if (srqn < 1u << limits::kLogReservedSrqs)
		return Status::bad_resource;
	if (queues.find(srqn))
		return Status::bad_resource_state;
	if (queues.objects() >= limits::kMostSrqs)
		return Status::exceeds_limit;
	const auto context = context_of<SrqContext>(command);
	const std::uint32_t page = SrqContext::uar_page.get(context.bytes);
	// The link needs 16 bytes, and a data segment another 16.
	if (page >= limits::kUarPages || SrqContext::log_stride.get(context.bytes) == 0)
		return Status::bad_parameter;
	queues.insert(srqn,
		      std::make_unique<SharedReceiveQueue>(
			      core_.memory, core_.events, srqn, context,
			      core_.context.record(page, SrqContext::record.get(context.bytes)),
			      core_.faults));
	return Status::ok;
}

} // namespace weft::mthca
