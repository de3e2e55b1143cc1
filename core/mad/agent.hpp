/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines a MAD agent. It sends MADs on a special QP, and receives the responses to them and the
 * unsolicited MADs that it registered for. Its consumer holds a pointer to the base, struct
 * ib_mad_agent.
 */
#pragma once

#include "pending_sends.hpp"
#include "rmpp_reception.hpp"

#include <kern/completion.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>

namespace mad
{

class SpecialQp;

/*
 * All state is protected by the lock of the special QP, except where noted. With that lock held, no
 * other lock is taken and no handler is called; only verbs that may be called in any context are.
 */
class Agent : public ib_mad_agent
{
public:
	kern::ListNode node; /* in an AgentTable */
	PendingSends pending;
	RmppReception reception;
	bool snoops = false;  /* sees all MADs, and replies to none */
	bool leaving = false; /* accepts no more sends */

	/* request: the unsolicited MADs to receive; nullptr if the agent receives none. */
	Agent(SpecialQp &qp, const ib_mad_reg_req *request);
	~Agent();

	SpecialQp &special_qp() const { return qp_; }
	bool does_rmpp() const { return rmpp_version != 0 && !(flags & IB_MAD_USER_RMPP); }
	/*
	 * Returns true if the agent has registered for unsolicited MADs of this class, version,
	 * method and OUI.
	 */
	bool wants(const ib::Mad &mad) const;
	/*
	 * Returns true if the agent has registered for exactly this class. wants() treats the two
	 * SMP classes as one.
	 */
	bool wants_class(u8 mgmt_class) const { return request_.mgmt_class == mgmt_class; }
	/* Returns true if both agents have registered for the same MADs of the same class. */
	bool overlaps(const Agent &other) const;

	/*
	 * A running handler or an outstanding send keeps the agent alive. get() must be called with
	 * the lock held, and not if `leaving` is set.
	 */
	void get() { uses_.get(); }
	void put();
	/* Waits until nothing uses the agent. Context: process. */
	void drain();

	/* Sets the timer to the earliest deadline. The caller holds the lock. */
	void arm_timer_locked(u64 now);

private:
	void on_timer();

	SpecialQp &qp_;
	bool registered_; /* registered for unsolicited MADs */
	ib_mad_reg_req request_;
	kern::RefCount uses_;
	kern::Completion unused_;
	kern::DelayedWork timer_{kern::method<&Agent::on_timer>, this};
};

inline Agent &Send::agent() const
{
	return *static_cast<Agent *>(mad_agent);
}

} // namespace mad
