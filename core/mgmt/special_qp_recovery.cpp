// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What is done in each state of a special QP (special_qp_state.hpp). Completions are polled, and steps taken, by run() alone: while one is
 * taken, nothing comes back that it does not know of.
 */
#include "special_qp.hpp"

#include <kern/log.hpp>

namespace mgmt
{

using State = SpecialQpState;
using Event = SpecialQpEvent;

void SpecialQp::step_locked(Event event)
{
	const State from = state(), to = next_state(from, event);

	state_.store_relaxed(static_cast<u8>(to));
	if (to == from)
		return;
	if (to == State::broken)
		retry_later_locked();
	/* What has waited goes out, or ends. */
	if (!is_recovering(to))
		pump_locked();
	kick();
}

/* Takes the steps that are due. True if run() is to look at what came of them. */
bool SpecialQp::recover()
{
	bool any = false;

	for (;;) {
		State state;
		bool ready;
		{
			kern::Guard guard(lock_);
			state = this->state();
			ready = state == State::failing ||
				(is_recovering(state) && posted_send_count_ == 0 &&
				 (state == State::stopped || receive_queue_.empty()));
		}
		if (state == State::up)
			break;
		if (!ready)
			return any;
		const bool done = take_step(state);
		kern::Guard guard(lock_);
		step_locked(done ? Event::done : Event::failed);
		any = true;
	}
	refill();
	return any;
}

bool SpecialQp::take_step(State state)
{
	kern::Result<> result;

	if (state == State::stopped) {
		/* Where the send queue was not all that had stopped, this is refused. */
		return resume().ok();
	}
	if (state == State::failing) {
		bool empty;
		{
			kern::Guard guard(lock_);
			empty = posted_send_count_ == 0 && receive_queue_.empty();
		}
		/* A QP that is left with nothing may be in RESET, from where no way leads to ERR (IBA 10.3.1). */
		result = empty ? kern::Result<>{} : move_to(IB_QPS_ERR);
	} else {
		result = bring_up();
	}
	if (!result.ok())
		kern_warning_limited("%s port %u QP%u: no recovery from an error yet: %d\n", device_->name, port_num_,
				     qp_->qp_num, result.error());
	return result.ok();
}

/* From any state, with nothing posted, to RTS. */
kern::Result<> SpecialQp::bring_up()
{
	TRY(move_to(IB_QPS_RESET));
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = 0;
	attr.qkey = type_ == IB_QPT_GSI ? ib::qkey_gsi : 0;
	attr.port_num = port_num_;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY));
	TRY(move_to(IB_QPS_RTR));
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_SQ_PSN));
	return {};
}

/* The send queue alone, from SQE (IBA 10.3.1.6). */
kern::Result<> SpecialQp::resume()
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQE;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	return {};
}

kern::Result<> SpecialQp::move_to(ib_qp_state state)
{
	ib_qp_attr attr{};
	attr.qp_state = state;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE));
	return {};
}

/* Makes up for the receive buffers that there was no memory for, or that the hardware did not take (MGMT-12). */
void SpecialQp::refill()
{
	const auto filled = receive_queue_.fill();

	kern::Guard guard(lock_);
	if (filled.ok()) {
		back_off_.succeeded();
	} else {
		kern_warning_limited("%s port %u QP%u: %d receive buffers are missing: %d\n", device_->name, port_num_,
				     qp_->qp_num, receive_queue_.missing(), filled.error());
		retry_later_locked();
	}
}

void SpecialQp::retry_later_locked()
{
	if (retry_work_.queue(back_off_.next_ms()))
		back_off_.failed();
}

/* Context: work queue. */
void SpecialQp::retry()
{
	{
		kern::Guard guard(lock_);
		step_locked(Event::retry);
	}
	kick();
}

} // namespace mgmt
