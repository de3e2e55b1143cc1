// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Counts each kind of asynchronous event, with the same names as the test module weft_traffic.ko.
#pragma once

#include <map>
#include <string>

#include <infiniband/verbs.h>

namespace weft::traffic
{

class EventCounts
{
public:
	void add(ibv_event_type event) { counts_[event]++; }
	// Formats the counts with their names: [communication established: 1][CQ error: 1]
	std::string describe() const
	{
		std::string text;
		for (const auto &[event, count] : counts_)
			text += std::string("[") + name_of(event) + ": " + std::to_string(count) +
				']';
		return text;
	}

private:
	static const char *name_of(ibv_event_type event)
	{
		switch (event) {
		case IBV_EVENT_CQ_ERR:
			return "CQ error";
		case IBV_EVENT_QP_FATAL:
			return "QP fatal error";
		case IBV_EVENT_QP_REQ_ERR:
			return "QP request error";
		case IBV_EVENT_QP_ACCESS_ERR:
			return "QP access error";
		case IBV_EVENT_COMM_EST:
			return "communication established";
		case IBV_EVENT_SQ_DRAINED:
			return "send queue drained";
		case IBV_EVENT_SRQ_ERR:
			return "SRQ error";
		case IBV_EVENT_SRQ_LIMIT_REACHED:
			return "SRQ limit reached";
		case IBV_EVENT_QP_LAST_WQE_REACHED:
			return "last WQE reached";
		default:
			return "another event";
		}
	}

	std::map<ibv_event_type, unsigned> counts_;
};

} // namespace weft::traffic
