/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queues the directed-route SMPs with zero hops that a node sends to itself. They wait here until
 * the special QP's work item hands them to the node's own agents, and never reach the wire (IBA
 * 14.2.2.1). The special QP's lock protects the queue.
 */
#pragma once

#include "send.hpp"

namespace mad
{

class LocalQueue
{
public:
	bool empty() const { return waiting_.empty(); }
	void push(Send &send) { waiting_.push_back(send); }
	/* Returns nullptr if the queue is empty. */
	Send *pop() { return waiting_.pop_front(); }
	/* Removes and returns the first send of an agent; nullptr if there is none. */
	Send *pop_of(const Agent &agent)
	{
		for (Send &send : waiting_) {
			if (&send.agent() == &agent) {
				send.agent_node.unlink();
				return &send;
			}
		}
		return nullptr;
	}

private:
	SendList waiting_;
};

} // namespace mad
