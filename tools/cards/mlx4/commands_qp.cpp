// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Commands that create, change and query queue pairs.
#include <utility>

#include "cards/mlx4/core.hpp"
#include "cards/mlx4/qp_context.hpp"

namespace weft::mlx4
{

using hw::mlx4::InitHca;
using hw::mlx4::Status;

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
		    qp_context::create(command.in.data() + hw::mlx4::qp_mailbox_context, *qp);
	    status != Status::ok)
		return status;
	// Only the special queue pairs may send packets that software has built.
	const bool special = context.special_qps.contain(qpn, limits::kSpecialQps);
	if (special != (qp->service == ServiceType::whole_packet))
		return Status::bad_parameter;
	qp->special = context.special_qps.kind(qpn);
	if (qp->special >= 0) {
		qp->path.port = context.special_qps.port(qpn);
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
		    in + hw::mlx4::qp_mailbox_context, hw::mlx4::qp_mailbox_opt_mask.get(in),
		    transition->required, static_cast<unsigned>(core_.ports.size()), changed);
	    status != Status::ok)
		return status;
	changed.state = transition->to;
	changed.sqd_event = transition->to == QpState::sq_draining &&
			    (command.in_modifier & hw::mlx4::sqd_event);
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

// The command has no output, and causes no completions and events. It also succeeds if the queue
// pair is already in reset.
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
			   command.out.data() + hw::mlx4::qp_mailbox_context);
	return Status::ok;
}

Status Commands::conf_special_qp(Command &command)
{
	CardContext &context = core_.context;
	const std::uint32_t base = command.in_modifier & kQpnMask;
	if (base == 0) {
		context.special_qps.set(0);
		return Status::ok;
	}
	if (core_.bring_up.stage() != mellanox_icm::Stage::initialised)
		return Status::bad_system_state;
	if (base % limits::kSpecialQps || base < 1u << limits::kLogReservedQps ||
	    base + limits::kSpecialQps > context.queue_pairs.size())
		return Status::bad_index;
	for (std::uint32_t qpn = base; qpn < base + limits::kSpecialQps; ++qpn)
		if (context.queue_pairs.find(qpn))
			return Status::resource_busy;
	context.special_qps.set(base);
	return Status::ok;
}

} // namespace weft::mlx4
