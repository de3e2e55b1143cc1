// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_states.hpp"
#include <kern/errno.h>

namespace mellanox_icm
{

namespace
{

namespace wire = hw::mellanox_icm;
using wire::Opcode;

constexpr unsigned int states = IB_QPS_ERR + 1;
constexpr u16 none = 0;

/*
 * Indexed by the states before and after the transition. RESET and ERR can be reached from every
 * state, except ERR from RESET.
 */
struct Commands {
	u16 opcode[states][states];

	constexpr Commands() : opcode{}
	{
		const auto set = [this](ib_qp_state from, ib_qp_state to, Opcode value) {
			opcode[from][to] = static_cast<u16>(value);
		};
		for (unsigned int from = 0; from < states; from++) {
			set(static_cast<ib_qp_state>(from), IB_QPS_RESET, Opcode::to_rst_qp);
			if (from != IB_QPS_RESET)
				set(static_cast<ib_qp_state>(from), IB_QPS_ERR, Opcode::to_err_qp);
		}
		set(IB_QPS_RESET, IB_QPS_INIT, Opcode::rst2init_qp);
		set(IB_QPS_INIT, IB_QPS_INIT, Opcode::init2init_qp);
		set(IB_QPS_INIT, IB_QPS_RTR, Opcode::init2rtr_qp);
		set(IB_QPS_RTR, IB_QPS_RTS, Opcode::rtr2rts_qp);
		set(IB_QPS_RTS, IB_QPS_RTS, Opcode::rts2rts_qp);
		set(IB_QPS_RTS, IB_QPS_SQD, Opcode::rts2sqd_qp);
		set(IB_QPS_SQD, IB_QPS_RTS, Opcode::sqd2rts_qp);
		set(IB_QPS_SQD, IB_QPS_SQD, Opcode::sqd2sqd_qp);
		set(IB_QPS_SQE, IB_QPS_RTS, Opcode::sqerr2rts_qp);
	}
};
constexpr Commands commands;

} // namespace

QpKind kind_of(ib_qp_type type)
{
	switch (type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		return QpKind::special;
	case IB_QPT_UD:
		return QpKind::datagram;
	default:
		return QpKind::connected;
	}
}

wire::ServiceType service_of(ib_qp_type type)
{
	switch (type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		return wire::ServiceType::mlx;
	case IB_QPT_UD:
		return wire::ServiceType::ud;
	case IB_QPT_UC:
		return wire::ServiceType::uc;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return wire::ServiceType::xrc;
	default:
		return wire::ServiceType::rc;
	}
}

kern::Result<Opcode> transition_command(ib_qp_state from, ib_qp_state to)
{
	if (static_cast<unsigned int>(from) >= states || static_cast<unsigned int>(to) >= states)
		return kern::Error{-EINVAL};
	const u16 opcode = commands.opcode[from][to];
	if (opcode == none)
		return kern::Error{-EINVAL};
	return static_cast<Opcode>(opcode);
}

ib_qp_state verbs_state(wire::QpState state)
{
	switch (state) {
	case wire::QpState::reset:
		return IB_QPS_RESET;
	case wire::QpState::init:
		return IB_QPS_INIT;
	case wire::QpState::rtr:
		return IB_QPS_RTR;
	case wire::QpState::rts:
		return IB_QPS_RTS;
	case wire::QpState::sqer:
		return IB_QPS_SQE;
	case wire::QpState::sqd:
	case wire::QpState::sq_draining:
		return IB_QPS_SQD;
	case wire::QpState::err:
		break;
	}
	return IB_QPS_ERR;
}

} // namespace mellanox_icm
