// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that create, change and query queue pairs.
#include <memory>
#include <utility>

#include "cards/mthca/core.hpp"
#include "cards/mthca/qp_context.hpp"

namespace weft::mthca
{

using hw::mthca::Status;

namespace
{

// SMI and GSI of two ports.
constexpr std::uint32_t kSpecialQps = 4;

} // namespace

Status Commands::rst2init_qp(Command &command)
{
	CardContext &context = core_.context;
	const std::uint32_t qpn = command.in_modifier & kQpnMask;
	if (context.queue_pairs.slot(qpn) < 1u << limits::kLogReservedQps)
		return Status::bad_resource;
	if (context.queue_pairs.find(qpn))
		return Status::bad_qp_state;
	if (context.queue_pairs.objects() >= limits::kMostQps)
		return Status::exceeds_limit;

	auto qp = std::make_unique<QueuePair>();
	qp->qpn = qpn;
	const std::uint8_t *const in = command.in.data();
	if (const Status status =
		    qp_context::create(in + hw::mellanox_icm::qp_mailbox_context,
				       static_cast<unsigned>(core_.ports.size()),
				       hw::mellanox_icm::qp_mailbox_opt_mask.get(in), *qp);
	    status != Status::ok)
		return status;
	// Only the special queue pairs may send packets that software has built.
	const bool special = context.special_qps.contain(qpn, kSpecialQps);
	if (special != (qp->service == ServiceType::whole_packet))
		return Status::bad_parameter;
	if (special)
		qp->path.port = context.special_qps.port(qpn);
	qp->special = context.special_qps.kind(qpn);
	if (!context.completion_queue(qp->send_cqn) || !context.completion_queue(qp->receive_cqn) ||
	    (qp->uses_srq && !context.shared_receive_queue(qp->srqn)))
		return Status::bad_resource;

	qp->state = QpState::init;
	core_.transport->qp_created(context.queue_pairs.insert(qpn, std::move(qp)));
	return Status::ok;
}

// Drivers send one command for SMI and one for GSI, whose numbers follow those of SMI. Revoking
// either one disables both.
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
	if (command.op_modifier == hw::mthca::special_gsi)
		return base == context.special_qps.base() + 2 ? Status::ok : Status::bad_index;
	if (command.op_modifier != hw::mthca::special_smi)
		return Status::bad_opcode;
	if (base % 2 || base < 1u << limits::kLogReservedQps ||
	    base + kSpecialQps > context.queue_pairs.size())
		return Status::bad_index;
	for (std::uint32_t qpn = base; qpn < base + kSpecialQps; ++qpn)
		if (context.queue_pairs.find(qpn))
			return Status::resource_busy;
	context.special_qps.set(base);
	return Status::ok;
}

} // namespace weft::mthca
