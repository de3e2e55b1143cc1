// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that mlx4 and mthca cards execute in the same way.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/contexts.hpp>

#include "cards/hca/queue_pair.hpp"
#include "cards/mellanox_icm/command.hpp"
#include "cards/mellanox_icm/page_mappings.hpp"
#include "cards/mellanox_icm/qp_transitions.hpp"

namespace weft::mellanox_icm
{

/*
 * CommonCommands - base class of a card's Commands. @Core is the card's (CoreBase). The other
 * parameters are functions for the card's layout of a QP's context:
 *
 *	Status modify_context(const std::uint8_t *context, std::uint32_t opt_mask,
 *			      Required required, unsigned ports, QueuePairAttributes &qp);
 *	void encode_context(const QueuePair &qp, const QueuePairProgress &progress,
 *			    std::uint8_t *context);
 */
template<class Core, auto modify_context, auto encode_context>
class CommonCommands
{
protected:
	using Status = hw::mellanox_icm::Status;

	static constexpr std::uint32_t kQpnMask = 0xffffff;

	explicit CommonCommands(Core &core) : core_(core) {}

	Status nop(Command &) { return Status::ok; }
	Status run_fw(Command &) { return core_.bring_up.run(); }
	Status close_hca(Command &)
	{
		core_.close();
		return Status::ok;
	}

	Status map_fa(Command &command) { return core_.bring_up.lend_firmware(command.in); }
	Status unmap_fa(Command &)
	{
		core_.close();
		core_.bring_up.take_firmware_back();
		return Status::ok;
	}
	Status set_icm_size(Command &command)
	{
		command.out_param = core_.bring_up.aux_pages();
		return Status::ok;
	}
	Status map_icm_aux(Command &command) { return core_.bring_up.lend_aux(command.in); }
	Status unmap_icm_aux(Command &)
	{
		core_.bring_up.take_aux_back();
		return Status::ok;
	}
	Status map_icm(Command &command)
	{
		return mellanox_icm::map_icm(command.in, core_.icm, core_.memory);
	}
	// The card reads entries from ICM at each use, so only packets in flight can depend on old
	// contents.
	Status sync_tpt(Command &)
	{
		core_.transport->keys_changed();
		return Status::ok;
	}

	Status hw2sw_srq(Command &command);
	Status query_srq(Command &command);
	Status arm_srq(Command &command);

	Status modify_qp(Command &command);
	Status to_err_qp(Command &command);
	Status to_rst_qp(Command &command);
	Status query_qp(Command &command);

	Status mad_ifc(Command &command);
	Status read_mcg(Command &command)
	{
		return core_.multicast.read(command.in_modifier, command.out) ? Status::ok
									      : Status::bad_index;
	}

	Core &core_;
	Mailboxes mailboxes_;
};

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::hw2sw_srq(Command &command)
{
	const std::uint32_t srqn = command.in_modifier;
	if (const auto *const queue = core_.context.shared_receive_queue(srqn)) {
		put(command, queue->context());
		core_.context.shared_receive_queues.remove(srqn);
	}
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::query_srq(Command &command)
{
	const auto *const queue = core_.context.shared_receive_queue(command.in_modifier);
	if (!queue)
		return Status::bad_resource_state;
	put(command, queue->context());
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::arm_srq(Command &command)
{
	auto *const queue = core_.context.shared_receive_queue(command.in_modifier);
	if (!queue)
		return Status::bad_resource_state;
	queue->arm_limit(static_cast<std::uint16_t>(command.in_param));
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::modify_qp(Command &command)
{
	auto *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	const Transition *const transition =
		qp ? find_transition(command.opcode, qp->state) : nullptr;
	if (!transition)
		return Status::bad_qp_state;

	hca::QueuePairAttributes changed = *qp;
	const std::uint8_t *const in = command.in.data();
	if (const Status status = modify_context(
		    in + hw::mellanox_icm::qp_mailbox_context,
		    hw::mellanox_icm::qp_mailbox_opt_mask.get(in), transition->required,
		    static_cast<unsigned>(core_.ports.size()), changed);
	    status != Status::ok)
		return status;
	changed.state = transition->to;
	changed.sqd_event = transition->to == hca::QpState::sq_draining &&
			    (command.in_modifier & hw::mellanox_icm::sqd_event);
	static_cast<hca::QueuePairAttributes &>(*qp) = changed;
	core_.transport->qp_changed(*qp, transition->from);
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::to_err_qp(Command &command)
{
	auto *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	if (!qp)
		return Status::bad_qp_state;
	const hca::QpState from = std::exchange(qp->state, hca::QpState::err);
	core_.transport->qp_changed(*qp, from);
	return Status::ok;
}

// The command has no output, whatever is requested, and causes no completions and events. It also
// succeeds if the queue pair is already in reset.
template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::to_rst_qp(Command &command)
{
	const std::uint32_t qpn = command.in_modifier & kQpnMask;
	if (auto *const qp = core_.context.queue_pair(qpn)) {
		core_.transport->qp_destroyed(*qp);
		core_.context.queue_pairs.remove(qpn);
	}
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::query_qp(Command &command)
{
	const auto *const qp = core_.context.queue_pair(command.in_modifier & kQpnMask);
	if (!qp)
		return Status::bad_qp_state;
	encode_context(*qp, core_.transport->progress(*qp),
		       command.out.data() + hw::mellanox_icm::qp_mailbox_context);
	return Status::ok;
}

template<class Core, auto modify_context, auto encode_context>
hw::mellanox_icm::Status
CommonCommands<Core, modify_context, encode_context>::mad_ifc(Command &command)
{
	using hw::mellanox_icm::MadIfc;
	const std::uint32_t number = MadIfc::in_modifier_port.of(command.in_modifier);
	if (!core_.context.port(number))
		return Status::bad_index;
	const auto slid = static_cast<ib::Lid>(MadIfc::in_modifier_slid.of(command.in_modifier));
	ib::Mad mad;
	std::memcpy(&mad, command.in.data(), sizeof(mad));
	// The agents answer unknown requests with a MAD status. The command fails only if they
	// refuse the MAD without a response.
	if (!core_.agents.local_mad(number, mad, slid,
				    command.op_modifier & MadIfc::op_ignore_mkey))
		return Status::bad_packet;
	std::memcpy(command.out.data(), &mad, sizeof(mad));
	return Status::ok;
}

} // namespace weft::mellanox_icm
