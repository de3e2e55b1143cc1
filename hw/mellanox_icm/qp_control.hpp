// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the part of a QP's control path that mlx4 and mthca share: the QP's number, its state
// transitions, and its removal from the card.
#pragma once
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "event_queues.hpp"
#include "number_allocator.hpp"
#include "qp_attributes.hpp"
#include "qp_states.hpp"
#include "work_queue.hpp"

namespace mellanox_icm
{

/*
 * Base class of a card's own QP. It has no data members, because the order of the members of Own
 * determines the cost of posting a request. Context is the card's layout of a QP context. Own has
 *
 *	using CompletionQueue = ...;
 *	static constexpr size_t mailbox_size;	// of the commands of transitions
 *	static constexpr u8 reset_modifier;	// of TO_RST: from any state, without output
 *
 *	SendQueue sq;			// has no ring if the QP is a program's
 *	ReceiveQueue rq;
 *	Srq *srq;
 *	ib_qp &verbs_;
 *	Hca &hca_;
 *	u32 number_;
 *	Number qpn_;			// empty for a special QP
 *	QpKind kind_;
 *	bool in_tables_;		// events and completions can find the QP
 *	kern::Mutex state_lock_;
 *	ib_qp_state state_;
 *	SavedAttributes saved_;
 *	ib_qp_cap cap_;
 *	EventCapacity event_capacity_;
 *
 *	void reset_queues();
 *	void fill_static_context(u8 *context);	// attributes that only RESET -> INIT sets
 *	// Writes the other attributes of a transition. Returns the mask of optional parameters.
 *	kern::Result<u32> put_transition(u8 *context, ib_qp_state to, const ib_qp_attr &attr,
 *					 int mask);
 *	void get_attributes(const u8 *context, ib_qp_attr &attr);	// attr.qp_state is set
 */
template<class Own, class Context>
class QpControl
{
public:
	/*
	 * Removes the QP from the card. Afterwards, no event or completion of it arrives, except
	 * those that remain in its CQs; returns their number. May sleep.
	 */
	u32 stop();
	kern::Result<> modify(const ib_qp_attr &attr, int mask);
	kern::Result<> query(ib_qp_attr &attr, ib_qp_init_attr &init);

	ib_qp &verbs() const { return own().verbs_; }
	/*
	 * Returns the hardware's number, which differs from the verbs' number for SMI and GSI
	 * (MGMT-02).
	 */
	u32 number() const { return own().number_; }
	QpKind kind() const { return own().kind_; }

protected:
	~QpControl() = default;

	/*
	 * Reserves entries for the QP's events, and allocates its number: that of the port's
	 * special QP, or a free number combined with `flags`. Errors: EBUSY for a special QP that
	 * exists; ENOSPC, ENOMEM, EDQUOT. May sleep.
	 */
	kern::Result<> take_number(const ib_qp_init_attr &attr, u32 flags = 0);
	/* Adds the QP to the tables, so that events and completions can find it. */
	void enter_tables();
	/*
	 * The first part of stop(): afterwards the card does not access the QP's memory any more.
	 */
	void leave_card();
	/* Returns the port of a transition's primary path. */
	u32 port_of(const ib_qp_attr &attr, int mask) const
	{
		return own().kind_ != QpKind::special && (mask & IB_QP_PORT) ? attr.port_num
									     : own().saved_.port;
	}

private:
	Own &own() { return static_cast<Own &>(*this); }
	const Own &own() const { return static_cast<const Own &>(*this); }
	kern::Result<> command(hw::mellanox_icm::Opcode opcode, ib_qp_state to,
			       const ib_qp_attr &attr, int mask);
	/*
	 * Makes the card flush all outstanding requests, and waits until it has. Only the card
	 * knows which of the requests without a completion it has executed.
	 */
	void flush(bool in_error);
};

template<class Own, class Context>
kern::Result<> QpControl<Own, Context>::take_number(const ib_qp_init_attr &attr, u32 flags)
{
	Own &own = this->own();
	own.event_capacity_ =
		KERN_TRY(own.hca_.events().reserve_async_entries(qp_events, own.verbs_.res.user));
	if (own.kind_ == QpKind::special) {
		const bool gsi = attr.qp_type == IB_QPT_GSI;
		own.number_ = own.hca_.special_qpn(gsi, attr.port_num);
		own.saved_.port = attr.port_num;
		if (own.hca_.find_qp(own.number_))
			return kern::Error{-EBUSY};
		own.verbs_.qp_num = gsi;
		return {};
	}
	own.qpn_ = KERN_TRY(Number::create(own.hca_.qpns()));
	own.verbs_.qp_num = own.number_ = own.qpn_.value() | flags;
	return {};
}

template<class Own, class Context>
void QpControl<Own, Context>::enter_tables()
{
	using Cq = typename Own::CompletionQueue;
	Own &own = this->own();
	kern::write_once(own.hca_.qp_entry(own.number_).qp, &own);
	// An XRC target has no CQs, and an XRC initiator has no receive CQ.
	if (own.verbs_.send_cq)
		Cq::of(own.verbs_.send_cq).attach(own, true);
	if (own.verbs_.recv_cq)
		Cq::of(own.verbs_.recv_cq).attach(own, false);
	own.in_tables_ = true;
}

template<class Own, class Context>
void QpControl<Own, Context>::flush(bool in_error)
{
	Own &own = this->own();
	const SendQueue &sq = own.sq;
	const ReceiveQueue &rq = own.rq;
	const bool drained = sq.posted_head() == sq.tail && rq.posted_head() == rq.tail;
	// A program's library removes the completions of a destroyed QP from its CQs.
	if (own.verbs_.res.user)
		return;
	// An SRQ entry that a partial message occupies is outstanding, too, but is not counted
	// here.
	if (own.hca_.failed() || (drained && !own.srq && own.verbs_.qp_type != IB_QPT_XRC_TGT))
		return;
	flush_requests<Context>(own.hca_, own.number_, in_error, sq, rq);
}

template<class Own, class Context>
void QpControl<Own, Context>::leave_card()
{
	Own &own = this->own();
	kern::Guard guard(own.state_lock_);
	if (own.state_ == IB_QPS_RESET)
		return;
	flush(own.state_ == IB_QPS_ERR);
	kern::ignore(
		own.hca_.commands().execute_closing({.opcode = hw::mellanox_icm::Opcode::to_rst_qp,
						     .in_modifier = own.number_,
						     .op_modifier = Own::reset_modifier}));
	own.state_ = IB_QPS_RESET;
}

template<class Own, class Context>
u32 QpControl<Own, Context>::stop()
{
	using Cq = typename Own::CompletionQueue;
	Own &own = this->own();
	leave_card();
	if (!own.in_tables_)
		return 0;
	u32 left = 0;
	if (own.verbs_.recv_cq)
		left += Cq::of(own.verbs_.recv_cq).detach(own, false);
	if (own.verbs_.send_cq)
		left += Cq::of(own.verbs_.send_cq).detach(own, true);
	kern::write_once(own.hca_.qp_entry(own.number_).qp, nullptr);
	own.in_tables_ = false;
	// A completion handler may still post requests; they are refused from now on.
	close_queue(own.sq);
	close_queue(own.rq);
	// Wait for handlers of asynchronous events that may still use the QP.
	own.hca_.synchronize_events();
	return left;
}

template<class Own, class Context>
kern::Result<> QpControl<Own, Context>::command(hw::mellanox_icm::Opcode opcode, ib_qp_state to,
						const ib_qp_attr &attr, int mask)
{
	using hw::mellanox_icm::Opcode;
	Own &own = this->own();
	auto &commands = own.hca_.commands();
	if (opcode == Opcode::to_err_qp || opcode == Opcode::to_rst_qp) {
		KERN_TRY(commands.execute({.opcode = opcode,
					   .in_modifier = own.number_,
					   .op_modifier = opcode == Opcode::to_rst_qp
								  ? Own::reset_modifier
								  : u8{0}}));
		return {};
	}

	auto mailbox = KERN_TRY(commands.mailbox(Own::mailbox_size));
	u8 *const context = mailbox.bytes() + hw::mellanox_icm::qp_mailbox_context;
	if (opcode == Opcode::rst2init_qp)
		own.fill_static_context(context);
	Context::local_qpn.set(context, own.number_);
	u32 optional = KERN_TRY(own.put_transition(context, to, attr, mask));
	if (own.kind_ == QpKind::connected)
		optional |= own.saved_.template put_access_change<Context>(context, attr, mask);
	hw::mellanox_icm::qp_mailbox_opt_mask.set(mailbox.bytes(), optional);
	const bool notify = opcode == Opcode::rts2sqd_qp && (mask & IB_QP_EN_SQD_ASYNC_NOTIFY) &&
			    attr.en_sqd_async_notify;
	return commands.execute_in(
		{.opcode = opcode,
		 .in_modifier = own.number_ | (notify ? hw::mellanox_icm::sqd_event : 0),
		 .answer = answer_of(opcode)},
		mailbox);
}

template<class Own, class Context>
kern::Result<> QpControl<Own, Context>::modify(const ib_qp_attr &attr, int mask)
{
	using Cq = typename Own::CompletionQueue;
	using hw::mellanox_icm::Opcode;
	Own &own = this->own();
	const ib_qp &verbs = own.verbs_;
	kern::Guard guard(own.state_lock_);
	// The card may have moved the QP to SQE; the caller then passes the current state.
	const ib_qp_state from = mask & IB_QP_CUR_STATE ? attr.cur_qp_state : own.state_;
	const ib_qp_state to = mask & IB_QP_STATE ? attr.qp_state : from;

	if ((mask & IB_QP_PORT) && (attr.port_num < 1 || attr.port_num > own.hca_.num_ports()))
		return kern::Error{-EINVAL};
	if (from == IB_QPS_RESET && to == IB_QPS_RESET)
		return {};
	const Opcode opcode = KERN_TRY(transition_command(from, to));
	// After the card has failed, a QP can only be flushed and destroyed.
	if (!own.hca_.failed() || (to != IB_QPS_ERR && to != IB_QPS_RESET)) {
		if (opcode == Opcode::rst2init_qp)
			own.reset_queues();
		KERN_TRY(command(opcode, to, attr, mask));
	}
	own.state_ = to;
	own.saved_.save(attr, mask);
	if (to == IB_QPS_RESET) {
		if (verbs.recv_cq)
			Cq::of(verbs.recv_cq).purge(own);
		if (verbs.send_cq && verbs.send_cq != verbs.recv_cq)
			Cq::of(verbs.send_cq).purge(own);
		own.reset_queues();
	}
	return {};
}

template<class Own, class Context>
kern::Result<> QpControl<Own, Context>::query(ib_qp_attr &attr, ib_qp_init_attr &init)
{
	Own &own = this->own();
	kern::Guard guard(own.state_lock_);
	if (own.state_ != IB_QPS_RESET) {
		auto mailbox = KERN_TRY(own.hca_.commands().mailbox());
		KERN_TRY(own.hca_.commands().execute_out(
			{.opcode = hw::mellanox_icm::Opcode::query_qp, .in_modifier = own.number_},
			mailbox));
		const u8 *const context = mailbox.bytes() + hw::mellanox_icm::qp_mailbox_context;
		const auto state =
			static_cast<hw::mellanox_icm::QpState>(Context::state.get(context));
		own.state_ = verbs_state(state);
		attr.sq_draining = state == hw::mellanox_icm::QpState::sq_draining;
		attr.qp_state = own.state_;
		own.get_attributes(context, attr);
	}
	attr.cur_qp_state = attr.qp_state = own.state_;
	attr.cap = own.cap_;
	init.cap = own.cap_;
	return {};
}

} // namespace mellanox_icm
