// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Commands about queue pairs.
#include <utility>

#include "connectx/core.hpp"
#include "connectx/qp_context.hpp"

namespace weft::connectx
{

using hw::connectx::InitHca;
using hw::connectx::Status;

namespace
{

constexpr std::uint32_t kQpnMask = 0xffffff;

} // namespace

Status Commands::rst2init_qp(Command &command)
{
	CardContext &context = core_.context;
	const std::uint32_t qpn = command.in_modifier & kQpnMask;
	const std::uint32_t slot = context.queue_pairs.slot(qpn);
	if (slot < 1u << limits::kLogReservedQps)
		return Status::bad_resource;
	if (context.queue_pairs.find(qpn))
		return Status::bad_qp_state;
	if (context.queue_pairs.objects() >= limits::kMostQps)
		return Status::exceeds_limit;

	auto qp = std::make_unique<QueuePair>();
	qp->qpn = qpn;
	if (const Status status =
		    qp_context::create(command.in.data() + hw::connectx::qp_mailbox_context, *qp);
	    status != Status::ok)
		return status;
	// The special queue pairs, and only they, send packets that software has made.
	const bool special =
		context.special_qp_base && qpn - context.special_qp_base < limits::kSpecialQps;
	if (special != (qp->service == ServiceType::mlx))
		return Status::bad_parameter;
	if (const int number = context.special_number(qpn); number >= 0) {
		qp->path.port = static_cast<std::uint8_t>(1 + (qpn - context.special_qp_base) % 2);
		if (!context.port(qp->path.port))
			return Status::bad_parameter;
	}
	if (!context.completion_queue(qp->send_cqn) || !context.completion_queue(qp->receive_cqn) ||
	    (qp->uses_srq && !context.shared_receive_queue(qp->srqn)))
		return Status::bad_resource;
	if (!backed(InitHca::qpc_base, slot, limits::kQpcEntry))
		return Status::icm_error;

	qp->state = QpState::init;
	core_.transport->qp_created(context.queue_pairs.insert(qpn, std::move(qp)));
	return Status::ok;
}

Status Commands::modify_qp(Command &command)
{
	QueuePair *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	const Transition *const transition =
		qp ? find_transition(command.opcode, qp->state) : nullptr;
	if (!transition)
		return Status::bad_qp_state;

	QueuePairAttributes changed = *qp;
	const std::uint8_t *const in = command.in.data();
	if (const Status status = qp_context::modify(
		    in + hw::connectx::qp_mailbox_context,
		    hw::connectx::qp_mailbox_opt_mask.get(in), transition->required,
		    static_cast<unsigned>(core_.ports.size()), changed);
	    status != Status::ok)
		return status;
	changed.state = transition->to;
	changed.sqd_event = transition->to == QpState::sq_draining &&
			    (command.in_modifier & hw::connectx::sqd_event);
	static_cast<QueuePairAttributes &>(*qp) = changed;
	core_.transport->qp_changed(*qp, transition->from);
	return Status::ok;
}

Status Commands::to_err_qp(Command &command)
{
	QueuePair *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	if (!qp)
		return Status::bad_qp_state;
	const QpState from = std::exchange(qp->state, QpState::err);
	core_.transport->qp_changed(*qp, from);
	return Status::ok;
}

// Without output, without completions, without events; of a queue pair that is reset already, too.
Status Commands::to_rst_qp(Command &command)
{
	const std::uint32_t qpn = command.in_modifier & kQpnMask;
	if (QueuePair *const qp = core_.context.queue_pair(qpn)) {
		core_.transport->qp_destroyed(*qp);
		core_.context.queue_pairs.remove(qpn);
	}
	return Status::ok;
}

Status Commands::query_qp(Command &command)
{
	const QueuePair *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	if (!qp)
		return Status::bad_qp_state;
	qp_context::encode(*qp, core_.transport->progress(*qp),
			   command.out.data() + hw::connectx::qp_mailbox_context);
	return Status::ok;
}

Status Commands::conf_special_qp(Command &command)
{
	CardContext &context = core_.context;
	const std::uint32_t base = command.in_modifier & kQpnMask;
	if (base == 0) {
		context.special_qp_base = 0;
		return Status::ok;
	}
	if (core_.bring_up.stage() != mellanox::Stage::initialised)
		return Status::bad_system_state;
	if (base % limits::kSpecialQps || base < 1u << limits::kLogReservedQps ||
	    base + limits::kSpecialQps > context.queue_pairs.size())
		return Status::bad_index;
	for (std::uint32_t qpn = base; qpn < base + limits::kSpecialQps; ++qpn)
		if (context.queue_pairs.find(qpn))
			return Status::resource_busy;
	context.special_qp_base = base;
	return Status::ok;
}

} // namespace weft::connectx
