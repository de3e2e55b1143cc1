// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the recovery of a special QP, state by state. Only SpecialQp::run() polls completions
 * and performs recovery steps, so no completion is processed during a step.
 */
#include "recovery.hpp"

#include <ib/mad.hpp>
#include <kern/log.hpp>

namespace mad
{

using State = SpecialQpState;
using Event = SpecialQpEvent;

State Recovery::step(Event event)
{
	const State from = state(), to = next_state(from, event);

	state_.store_relaxed(static_cast<u8>(to));
	if (to != from) {
		if (to == State::up)
			back_off_.succeeded();
		if (to == State::broken && retry_.queue(back_off_.next_ms()))
			back_off_.failed();
	}
	return to;
}

kern::Result<> Recovery::take_step(State state, bool nothing_posted)
{
	if (state == State::stopped) {
		/*
		 * Fails if the QP is not in SQE, which means that more than the send queue has
		 * stopped.
		 */
		return resume();
	}
	kern::Result<> result;
	if (state == State::failing) {
		/*
		 * A QP without posted requests may be in RESET, from which there is no transition
		 * to ERR (IBA 10.3.1). A QP whose CQ could not be polled after RESET still has
		 * requests.
		 */
		result = nothing_posted || is_reset_ ? kern::Result<>{} : move_to(IB_QPS_ERR);
	} else {
		result = bring_up();
	}
	if (!result.ok())
		kern_warning_limited("%s port %u QP%u: no recovery from an error yet: %d\n",
				     qp_->device->name, port_num_, qp_->qp_num, result.error());
	return result;
}

kern::Result<> Recovery::reset()
{
	KERN_TRY(move_to(IB_QPS_RESET));
	is_reset_ = true;
	return {};
}

kern::Result<> Recovery::bring_up()
{
	KERN_TRY(reset());
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = 0;
	attr.qkey = type_ == IB_QPT_GSI ? ib::qkey_gsi : 0;
	attr.port_num = port_num_;
	KERN_TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY));
	is_reset_ = false;
	KERN_TRY(move_to(IB_QPS_RTR));
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0;
	KERN_TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_SQ_PSN));
	return {};
}

/* Restarts the send queue by the transition from SQE to RTS (IBA 10.3.1.6). */
kern::Result<> Recovery::resume()
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQE;
	KERN_TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	return {};
}

kern::Result<> Recovery::move_to(ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	KERN_TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE));
	return {};
}

} // namespace mad
