/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The agents on a special QP. Finds the agent that a MAD is for. Protected by the special QP's
 * lock.
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
	 * Gives the agent the high half of its transaction ids. Errors: EINVAL if another has
	 * claimed one of the MADs that it wants.
	 */
	kern::Result<> add(Agent &agent);
	/* The one that a MAD is for; nullptr for none. */
	Agent *find(const Receive &receive);
	/*
	 * The first snooping agent, or the next behind one that may have left meanwhile; nullptr
	 * for none.
	 */
	Agent *snooper_behind(Agent *after);

private:
	kern::List<Agent, &Agent::node> agents_;
	u32 last_hi_tid_;
};

} // namespace mad
