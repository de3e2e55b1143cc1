// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that create, change and query queue pairs.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "cards/mlx5/core.hpp"
#include "cards/mlx5/qp_context.hpp"

namespace weft::mlx5
{

using hw::mlx5::Opcode;
using hw::mlx5::QpContext;
using hw::mlx5::Status;
using qp_context::Required;
namespace qp_command = hw::mlx5::qp_command;

namespace
{

struct Transition {
	Opcode opcode;
	QpState from;
	QpState to;
	Required required;
};

// RST2INIT, 2RST and 2ERR create, destroy and flush, so they have separate handlers.
constexpr Transition kTransitions[] = {
	{Opcode::init2init_qp, QpState::init, QpState::init, Required::none},
	{Opcode::init2rtr_qp, QpState::init, QpState::rtr, Required::to_rtr},
	{Opcode::rtr2rts_qp, QpState::rtr, QpState::rts, Required::to_rts},
	{Opcode::rts2rts_qp, QpState::rts, QpState::rts, Required::none},
	{Opcode::sqerr2rts_qp, QpState::sqer, QpState::rts, Required::none},
	{Opcode::sqd2rts_qp, QpState::sqd, QpState::rts, Required::none},
};

const Transition *find_transition(Opcode opcode, QpState from)
{
	const auto found = std::ranges::find_if(kTransitions, [&](const Transition &t) {
		return t.opcode == opcode && t.from == from;
	});
	return found == std::end(kTransitions) ? nullptr : found;
}

QueuePair *named(Core &core, const Command &command)
{
	QueuePair *const qp =
		core.context.queue_pair(hw::mlx5::object_number.get(command.in.data()));
	return qp && !qp->is_send_queue ? qp : nullptr;
}

// Copies the port, P_Key and Q_Key of @sender to the send queues that send as it.
void update_send_queues(Core &core, const QueuePair &sender)
{
	core.context.queue_pairs.for_each([&](hca::QueuePair &pair) {
		auto &queue = static_cast<QueuePair &>(pair);
		if (queue.is_send_queue && queue.sends_as == sender.qpn) {
			queue.path = sender.path;
			queue.qkey = sender.qkey;
		}
	});
}

} // namespace

Status Commands::create_qp(Command &command)
{
	const std::uint8_t *const context = command.in.data() + qp_command::context;
	CardContext &card = core_.context;
	auto qp = std::make_unique<QueuePair>();
	switch (qp_context::create(context, *qp)) {
	case qp_context::Created::done:
		if (!qp->steered || core_.enhanced_ipoib)
			break;
		[[fallthrough]];
	case qp_context::Created::not_modelled:
		core_.unsupported.note(RequestKind::queue_pair_type,
				       QpContext::service.get(context));
		return Status::bad_parameter;
	case qp_context::Created::bad_field:
		return Status::bad_parameter;
	}
	if ((qp->has_send_queue && !card.completion_queue(qp->send_cqn)) ||
	    (qp->has_receive_queue && !card.completion_queue(qp->receive_cqn)) ||
	    (qp->uses_srq && !card.shared_receive_queue(qp->srqn)))
		return Status::bad_resource;
	const PageLayout layout{.log_page_size = QpContext::log_page_size.get(context),
				.page_offset = QpContext::page_offset.get(context),
				.bytes = qp->buffer_bytes()};
	if (const Status status = make_pages(command, hw::mlx5::pages_offset, layout, qp->buffer);
	    status != Status::ok)
		return status;
	const auto number = core_.qpns.take();
	if (!number)
		return Status::no_resources;
	qp->qpn = *number;
	core_.polled.add(*qp);
	card.queue_pairs.insert(*number, std::move(qp));
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::destroy_qp(Command &command)
{
	QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	core_.destroy_qp(*qp);
	return Status::ok;
}

Status Commands::rst2init_qp(Command &command)
{
	QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	if (qp->state != QpState::reset)
		return Status::bad_qp_state;
	const std::uint8_t *const in = command.in.data();
	QueuePairAttributes changed = *qp;
	if (!qp_context::modify(in + qp_command::context, qp_command::opt_mask.get(in),
				Required::to_init, static_cast<unsigned>(core_.ports.size()),
				qp->kind, changed))
		return Status::bad_parameter;
	changed.special = qp->kind == QpService::qp0 ? 0 : qp->kind == QpService::qp1 ? 1 : -1;
	if (changed.special >= 0) {
		std::uint32_t &place =
			core_.context.special_qpns[2u * static_cast<unsigned>(changed.special) +
						   changed.path.port - 1];
		if (place)
			return Status::resource_busy;
		place = qp->qpn;
	}
	changed.state = QpState::init;
	static_cast<QueuePairAttributes &>(*qp) = changed;
	core_.transport->qp_created(*qp);
	if (qp->steered)
		update_send_queues(core_, *qp);
	return Status::ok;
}

Status Commands::modify_qp(Command &command)
{
	QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	const Transition *const transition = find_transition(command.opcode, qp->state);
	if (!transition)
		return Status::bad_qp_state;
	const std::uint8_t *const in = command.in.data();
	QueuePairAttributes changed = *qp;
	if (!qp_context::modify(in + qp_command::context, qp_command::opt_mask.get(in),
				transition->required, static_cast<unsigned>(core_.ports.size()),
				qp->kind, changed))
		return Status::bad_parameter;
	// A special queue pair cannot move to another port.
	if (qp->special >= 0 && changed.path.port != qp->path.port)
		return Status::bad_parameter;
	changed.state = transition->to;
	static_cast<QueuePairAttributes &>(*qp) = changed;
	core_.transport->qp_changed(*qp, transition->from);
	if (qp->steered)
		update_send_queues(core_, *qp);
	if (qp->special == 1 && qp->path.port == 1 && qp->state == QpState::rts)
		core_.subscription.qp1_ready();
	return Status::ok;
}

Status Commands::to_err_qp(Command &command)
{
	QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	// Permitted in any state (IBA 10.3.1). Requests that are posted later are flushed, too.
	if (qp->state == QpState::reset) {
		qp->state = QpState::init;
		core_.transport->qp_created(*qp);
	}
	const QpState from = std::exchange(qp->state, QpState::err);
	core_.transport->qp_changed(*qp, from);
	return Status::ok;
}

// The command causes no completions and events. It also succeeds if the queue pair is already in
// reset.
Status Commands::to_rst_qp(Command &command)
{
	QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	core_.retire_qp(*qp);
	return Status::ok;
}

Status Commands::query_qp(Command &command)
{
	const QueuePair *const qp = named(core_, command);
	if (!qp)
		return Status::bad_resource;
	qp_context::encode(*qp, core_.transport->progress(*qp),
			   command.out.data() + qp_command::context);
	return Status::ok;
}

} // namespace weft::mlx5
