// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that create, change and query queue pairs.
#include <memory>
#include <utility>

#include "cards/mlx4/core.hpp"
#include "cards/mlx4/qp_context.hpp"

namespace weft::mlx4
{

using hw::mlx4::InitHca;
using hw::mlx4::Status;

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
