/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sends of one agent that are out: which of them a MAD is the other side's word on, and whose
 * time is over. All of it is under the lock of the agent's special QP. It decides nothing: how a
 * send ends is the special QP's affair.
 */
#pragma once

#include "send.hpp"

namespace mgmt
{

class PendingSends
{
public:
	bool empty() const { return outstanding_.empty() && timed_.empty(); }
	/* From here on it is found, until it has ended and is taken out by its node. */
	void add(Send &send) { outstanding_.push_back(send); }
	/* To look at each; the one that is looked at may be taken out. */
	const SendList &all() const { return outstanding_; }

	/*
	 * The send that a MAD is the other side's word on: same transaction, same class, the other
	 * direction, still waiting; nullptr for none. Transaction ids are the requester's: without
	 * a look at the direction, our own answer to a peer that happens to use the same one would
	 * do.
	 */
	Send *find(const Receive &receive) const;

	/* An answer or an ACK is due by now + time-out. True if no other is due before. */
	bool wait(Send &send, u64 now);
	/* The first whose time is over, which waits no longer; nullptr for none. */
	Send *expire(u64 now);
	/* When expire() has something to do next; ~0 for never. */
	u64 earliest() const;

private:
	SendList outstanding_;
	kern::List<Send, &Send::timer_node> timed_; /* by deadline */
};

} // namespace mgmt
