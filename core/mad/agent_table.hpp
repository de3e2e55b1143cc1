/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Holds the agents of a special QP, and finds the agent to which a MAD belongs. The special QP's
 * lock protects the table.
 */
#pragma once

#include "agent.hpp"

namespace mad
{

class AgentTable
{
public:
	AgentTable();

	bool empty() const { return agents_.empty(); }
	/*
	 * Assigns the upper half of the agent's transaction IDs and adds the agent. Errors: EINVAL
	 * if another agent has registered for one of the same MADs.
	 */
	kern::Result<> add(Agent &agent);
	/* Returns the agent that a MAD belongs to, or nullptr. */
	Agent *find(const Receive &receive);
	/*
	 * Returns the first snoop agent, or the one after @after, which may have been removed
	 * meanwhile (the list then starts again from its beginning). Returns nullptr if there is
	 * none.
	 */
	Agent *next_snooper_after(Agent *after);

private:
	kern::List<Agent, &Agent::node> agents_;
	u32 last_hi_tid_;
};

} // namespace mad
