// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "agent_table.hpp"

#include <kern/time.hpp>

namespace mad
{

/*
 * The upper half of a transaction ID identifies the agent that a response belongs to. The first
 * value is random, so that two nodes seldom use the same values. 0 is not assigned.
 */
AgentTable::AgentTable() : last_hi_tid_(kern::random_u32()) {}

kern::Result<> AgentTable::add(Agent &agent)
{
	for (const Agent &other : agents_)
		if (other.overlaps(agent))
			return kern::Error{-EINVAL};
	do {
		agent.hi_tid = ++last_hi_tid_;
	} while (agent.hi_tid == 0);
	agents_.push_back(agent);
	return {};
}

Agent *AgentTable::find(const Receive &receive)
{
	const auto &header = receive.header();
	const auto hi_tid = static_cast<u32>(header.tid.value() >> 32);

	Agent *willing = nullptr;
	for (Agent &agent : agents_) {
		if (agent.snoops)
			continue;
		if (header.is_response()) {
			if (agent.hi_tid == hi_tid)
				return &agent;
			continue;
		}
		if (!agent.wants(receive.buffer.mad))
			continue;
		if (agent.wants_class(header.mgmt_class))
			return &agent;
		/*
		 * This agent has registered for the other SMP class, so it receives the MAD only if
		 * no agent has registered for its class.
		 */
		willing = &agent;
	}
	return willing;
}

Agent *AgentTable::next_snooper_after(Agent *after)
{
	bool behind = after == nullptr || !after->node.linked();

	for (Agent &agent : agents_) {
		if (behind && agent.snoops && &agent != after)
			return &agent;
		behind = behind || &agent == after;
	}
	return nullptr;
}

} // namespace mad
