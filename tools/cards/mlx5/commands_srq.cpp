// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for shared receive queues: receive memory pools, and XRC SRQs.
#include <memory>
#include <utility>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::ArmSrq;
using hw::mlx5::RmpContext;
using hw::mlx5::Status;
using hw::mlx5::WqContext;
using hw::mlx5::XrcSrqContext;
namespace rmp_command = hw::mlx5::rmp_command;

namespace
{

// The stride must have space for the link and one segment.
constexpr unsigned kLeastLogStride = 5;
constexpr unsigned kMostLogStride = 9;

bool possible(const SharedReceiveQueue::Settings &settings)
{
	return settings.log_size <= limits::kLogSrqSize && settings.log_stride >= kLeastLogStride &&
	       settings.log_stride <= kMostLogStride && settings.record % 4 == 0;
}

std::uint64_t bytes_of(const SharedReceiveQueue::Settings &settings)
{
	return std::uint64_t{1} << (settings.log_size + settings.log_stride);
}

// Returns the queue with the number in the command; null if there is none of this kind.
SharedReceiveQueue *named(Core &core, const Command &command, bool xrc)
{
	SharedReceiveQueue *const queue =
		core.context.shared_receive_queue(hw::mlx5::object_number.get(command.in.data()));
	return queue && queue->settings().xrc == xrc ? queue : nullptr;
}

Status insert(Core &core, const SharedReceiveQueue::Settings &settings, PageList pages,
	      Command &command)
{
	const auto number = core.srqns.take();
	if (!number)
		return Status::no_resources;
	core.context.shared_receive_queues.insert(
		*number, std::make_unique<SharedReceiveQueue>(core.memory, core.events, core.faults,
							      *number, settings, std::move(pages)));
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

} // namespace

Status Commands::create_xrc_srq(Command &command)
{
	const std::uint8_t *const context = command.in.data() + hw::mlx5::context_offset;
	SharedReceiveQueue::Settings settings{
		.xrc = true,
		.log_size = static_cast<std::uint8_t>(XrcSrqContext::log_size.get(context)),
		.log_stride = static_cast<std::uint8_t>(4 + XrcSrqContext::log_stride.get(context)),
		.pd = XrcSrqContext::pd.get(context),
		.xrc_domain = static_cast<std::uint16_t>(XrcSrqContext::xrc_domain.get(context)),
		.cqn = XrcSrqContext::cqn.get(context),
		.user_index = XrcSrqContext::user_index.get(context),
		.limit = static_cast<std::uint16_t>(XrcSrqContext::limit.get(context)),
		.record = XrcSrqContext::record.get(context)};
	if (XrcSrqContext::index_is_number.get(context))
		settings.user_index = hw::mlx5::QpContext::no_user_index;
	if (!possible(settings))
		return Status::bad_parameter;
	PageList pages;
	const PageLayout layout{.log_page_size = XrcSrqContext::log_page_size.get(context),
				.page_offset = XrcSrqContext::page_offset.get(context),
				.bytes = bytes_of(settings)};
	if (const Status status = make_pages(command, hw::mlx5::pages_offset, layout, pages);
	    status != Status::ok)
		return status;
	return insert(core_, settings, std::move(pages), command);
}

Status Commands::query_xrc_srq(Command &command)
{
	const SharedReceiveQueue *const queue = named(core_, command, true);
	if (!queue)
		return Status::bad_resource;
	const SharedReceiveQueue::Settings &settings = queue->settings();
	std::uint8_t *const out = command.out.data() + hw::mlx5::context_offset;
	XrcSrqContext::state.set(out, queue->failed() ? XrcSrqContext::error : 0);
	XrcSrqContext::log_size.set(out, settings.log_size);
	XrcSrqContext::log_stride.set(out, settings.log_stride - 4u);
	XrcSrqContext::xrc_domain.set(out, settings.xrc_domain);
	XrcSrqContext::page_offset.set(out, queue->pages().page_offset());
	XrcSrqContext::cqn.set(out, settings.cqn);
	XrcSrqContext::log_page_size.set(out, queue->pages().log_page_size());
	XrcSrqContext::user_index.set(out, settings.user_index);
	XrcSrqContext::pd.set(out, settings.pd);
	XrcSrqContext::limit.set(out, queue->limit());
	XrcSrqContext::count.set(out, queue->available());
	XrcSrqContext::record.set(out, settings.record);
	return Status::ok;
}

Status Commands::arm_xrc_srq(Command &command)
{
	SharedReceiveQueue *const queue = named(core_, command, true);
	if (!queue)
		return Status::bad_resource;
	if (command.op_modifier != ArmSrq::op_limit)
		return Status::bad_opcode;
	queue->arm_limit(static_cast<std::uint16_t>(ArmSrq::limit.get(command.in.data())));
	return Status::ok;
}

Status Commands::create_rmp(Command &command)
{
	const std::uint8_t *const queue =
		command.in.data() + rmp_command::context + RmpContext::work_queue;
	const SharedReceiveQueue::Settings settings{
		.log_size = static_cast<std::uint8_t>(WqContext::log_size.get(queue)),
		.log_stride = static_cast<std::uint8_t>(WqContext::log_stride.get(queue)),
		.pd = WqContext::pd.get(queue),
		.limit = static_cast<std::uint16_t>(WqContext::limit.get(queue)),
		.record = WqContext::record.get(queue)};
	if (!possible(settings) || WqContext::type.get(queue) != WqContext::linked_list)
		return Status::bad_parameter;
	PageList pages;
	const PageLayout layout{.log_page_size = WqContext::log_page_size.get(queue),
				.page_offset = WqContext::page_offset.get(queue),
				.bytes = bytes_of(settings)};
	if (const Status status = make_pages(command, rmp_command::pages, layout, pages);
	    status != Status::ok)
		return status;
	return insert(core_, settings, std::move(pages), command);
}

Status Commands::modify_rmp(Command &command)
{
	SharedReceiveQueue *const queue = named(core_, command, false);
	if (!queue)
		return Status::bad_resource;
	const std::uint8_t *const in = command.in.data();
	if (rmp_command::bitmask.get(in) & rmp_command::set_limit)
		queue->arm_limit(static_cast<std::uint16_t>(
			WqContext::limit.get(in + rmp_command::context + RmpContext::work_queue)));
	return Status::ok;
}

Status Commands::query_rmp(Command &command)
{
	const SharedReceiveQueue *const queue = named(core_, command, false);
	if (!queue)
		return Status::bad_resource;
	const SharedReceiveQueue::Settings &settings = queue->settings();
	std::uint8_t *const context = command.out.data() + rmp_command::context;
	std::uint8_t *const out = context + RmpContext::work_queue;
	RmpContext::state.set(context, queue->failed() ? RmpContext::error : RmpContext::ready);
	WqContext::page_offset.set(out, queue->pages().page_offset());
	WqContext::limit.set(out, queue->limit());
	WqContext::pd.set(out, settings.pd);
	WqContext::record.set(out, settings.record);
	WqContext::hardware_counter.set(out, queue->taken());
	WqContext::software_counter.set(out, queue->taken() + queue->available());
	WqContext::log_stride.set(out, settings.log_stride);
	WqContext::log_page_size.set(out, queue->pages().log_page_size());
	WqContext::log_size.set(out, settings.log_size);
	return Status::ok;
}

Status Commands::destroy_srq(Command &command)
{
	const bool xrc = command.opcode == hw::mlx5::Opcode::destroy_xrc_srq;
	const SharedReceiveQueue *const queue = named(core_, command, xrc);
	if (!queue)
		return Status::bad_resource;
	const std::uint32_t number = queue->number();
	core_.context.shared_receive_queues.remove(number);
	core_.srqns.give(number);
	return Status::ok;
}

} // namespace weft::mlx5
