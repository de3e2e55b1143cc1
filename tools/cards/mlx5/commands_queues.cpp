// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for event and completion queues.
#include <cstring>
#include <memory>
#include <utility>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::CqContext;
using hw::mlx5::Cqe;
using hw::mlx5::EqContext;
using hw::mlx5::ModifyCq;
using hw::mlx5::Status;

Status Commands::create_eq(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	const std::uint8_t *const context = in + hw::mlx5::context_offset;
	EventQueue::Settings settings{
		.log_size = static_cast<std::uint8_t>(EqContext::log_size.get(context)),
		.vector = static_cast<std::uint16_t>(EqContext::vector.get(context)),
		.uar_page = EqContext::uar_page.get(context),
		.overrun_ignore = EqContext::overrun_ignore.get(context) != 0};
	// The consumer index of an event queue is only in its UAR page, so polling could lose it.
	const bool polled = core_.polled.polls(settings.uar_page);
	if (polled)
		core_.unsupported.note(RequestKind::event_queue_page, 0);
	if (settings.log_size > limits::kLogEqSize || settings.vector >= limits::kVectors || polled)
		return Status::bad_parameter;
	PageList pages;
	const PageLayout layout{.log_page_size = EqContext::log_page_size.get(context),
				.page_offset = EqContext::page_offset.get(context),
				.bytes = std::uint64_t{hw::mlx5::Eqe::size} << settings.log_size};
	if (const Status status = make_pages(command, hw::mlx5::pages_offset, layout, pages);
	    status != Status::ok)
		return status;
	const auto number =
		core_.events.create(settings, std::move(pages), hw::mlx5::eq_event_mask.get(in));
	if (!number)
		return Status::no_resources;
	hw::mlx5::event_queue_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::destroy_eq(Command &command)
{
	return core_.events.remove(hw::mlx5::event_queue_number.get(command.in.data()))
		       ? Status::ok
		       : Status::bad_resource;
}

Status Commands::query_eq(Command &command)
{
	const EventQueue *const queue =
		core_.events.find(hw::mlx5::event_queue_number.get(command.in.data()));
	if (!queue)
		return Status::bad_resource;
	const EqContext context = queue->context();
	std::memcpy(command.out.data() + hw::mlx5::context_offset, context.bytes,
		    sizeof(context.bytes));
	return Status::ok;
}

namespace
{

PageLayout cq_layout(const std::uint8_t *context, unsigned log_size, bool large_slots)
{
	return {.log_page_size = CqContext::log_page_size.get(context),
		.page_offset = CqContext::page_offset.get(context),
		.bytes = std::uint64_t{Cqe::size} << (log_size + (large_slots ? 1 : 0))};
}

// A collapsed queue has one slot, so that there is no place for mini CQEs.
bool can_compress(const std::uint8_t *context)
{
	const std::uint32_t format = CqContext::mini_format.get(context);
	return CqContext::compression_layout.get(context) == CqContext::basic_layout &&
	       !CqContext::collapsed.get(context) &&
	       (format == CqContext::mini_hash || format == CqContext::mini_checksum ||
		format == CqContext::mini_checksum_stride);
}

} // namespace

Status Commands::create_cq(Command &command)
{
	const std::uint8_t *const context = command.in.data() + hw::mlx5::context_offset;
	const std::uint32_t entry_size = CqContext::entry_size.get(context);
	CompletionQueue::Settings settings{
		.log_size = static_cast<std::uint8_t>(CqContext::log_size.get(context)),
		.large_slots = entry_size != CqContext::entry_64,
		.padded = entry_size == CqContext::entry_128_padded,
		.overrun_ignore = CqContext::overrun_ignore.get(context) != 0,
		.collapsed = CqContext::collapsed.get(context) != 0,
		.compressed = CqContext::compressed.get(context) != 0,
		.mini_format = CqContext::mini_format.get(context),
		.uar_page = CqContext::uar_page.get(context),
		.eqn = CqContext::eqn.get(context),
		.record = CqContext::record.get(context)};
	if (settings.log_size > limits::kLogCqSize || entry_size > CqContext::entry_128_padded ||
	    settings.record % 8 || (settings.compressed && !can_compress(context)))
		return Status::bad_parameter;
	if (!core_.events.find(settings.eqn))
		return Status::bad_resource;
	PageList pages;
	if (const Status status =
		    make_pages(command, hw::mlx5::pages_offset,
			       cq_layout(context, settings.log_size, settings.large_slots), pages);
	    status != Status::ok)
		return status;
	const auto number = core_.cqns.take();
	if (!number)
		return Status::no_resources;
	auto &queue = core_.context.completion_queues.insert(
		*number,
		std::make_unique<CompletionQueue>(
			CompletionQueue::Services{core_.memory, core_.events, core_.host.loop(),
						  core_.faults, core_.held_completions},
			*number, settings, std::move(pages)));
	queue.set_moderation(static_cast<std::uint16_t>(CqContext::moderation_count.get(context)),
			     static_cast<std::uint16_t>(CqContext::moderation_period.get(context)));
	core_.polled.add(queue);
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::destroy_cq(Command &command)
{
	const std::uint32_t number = hw::mlx5::object_number.get(command.in.data());
	const CompletionQueue *const queue = core_.context.completion_queue(number);
	if (!queue)
		return Status::bad_resource;
	core_.polled.remove(*queue);
	core_.context.completion_queues.remove(number);
	core_.cqns.give(number);
	return Status::ok;
}

Status Commands::query_cq(Command &command)
{
	const CompletionQueue *const queue =
		core_.context.completion_queue(hw::mlx5::object_number.get(command.in.data()));
	if (!queue)
		return Status::bad_resource;
	const CqContext context = queue->context();
	std::memcpy(command.out.data() + hw::mlx5::context_offset, context.bytes,
		    sizeof(context.bytes));
	return Status::ok;
}

Status Commands::modify_cq(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	const std::uint8_t *const context = in + hw::mlx5::context_offset;
	CompletionQueue *const queue =
		core_.context.completion_queue(hw::mlx5::object_number.get(in));
	if (!queue)
		return Status::bad_resource;
	if (command.op_modifier == ModifyCq::op_modify) {
		const std::uint32_t selected = ModifyCq::selector.get(in);
		const auto choose = [selected](std::uint32_t bit, std::uint32_t value,
					       std::uint16_t now) {
			return selected & bit ? static_cast<std::uint16_t>(value) : now;
		};
		queue->set_moderation(
			choose(ModifyCq::select_count, CqContext::moderation_count.get(context),
			       queue->moderation_count()),
			choose(ModifyCq::select_period, CqContext::moderation_period.get(context),
			       queue->moderation_period()));
		return Status::ok;
	}
	if (command.op_modifier != ModifyCq::op_resize)
		return Status::bad_opcode;
	const std::uint32_t log_size = CqContext::log_size.get(context);
	if (log_size > limits::kLogCqSize)
		return Status::bad_parameter;
	PageList pages;
	if (const Status status =
		    make_pages(command, hw::mlx5::pages_offset,
			       cq_layout(context, log_size, queue->large_slots()), pages);
	    status != Status::ok)
		return status;
	switch (queue->resize(std::move(pages), log_size)) {
	case CompletionQueue::Resized::done:
		return Status::ok;
	case CompletionQueue::Resized::too_small:
		return Status::bad_size;
	case CompletionQueue::Resized::unreachable:
		break;
	}
	return Status::bad_resource_state;
}

} // namespace weft::mlx5
