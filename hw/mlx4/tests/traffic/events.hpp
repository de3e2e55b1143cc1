// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Counts the asynchronous events that weft_traffic.ko receives. */
#pragma once
#include <kern/atomic.hpp>
#include <rdma/ib_verbs.h>
#include "answer.hpp"

namespace traffic
{

/* Counts the asynchronous events of each kind. May be used in any context. */
class EventCounts
{
public:
	void add(ib_event_type event)
	{
		if (static_cast<u32>(event) < kinds)
			counts_[event].fetch_add(1);
	}
	/* Formats the counts with their names: [path migrated: 1][QP access error: 2] */
	void describe(Answer &answer) const
	{
		for (u32 i = 0; i < kinds; i++)
			if (const u32 count = counts_[i].load_acquire())
				answer.add("[%s: %u]", ib_event_msg(static_cast<ib_event_type>(i)),
					   count);
	}

private:
	static constexpr u32 kinds = IB_EVENT_WQ_FATAL + 1;
	kern::Atomic<u32> counts_[kinds] = {};
};

} // namespace traffic
