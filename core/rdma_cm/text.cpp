// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions that return texts for events and reject reasons.
#include <rdma/rdma_cm.h>

extern "C" {

const char *rdma_event_msg(rdma_cm_event_type event)
{
	static constexpr const char *texts[] = {
		"address resolved", "address error",    "route resolved", "route error",
		"connect request",  "connect response", "connect error",  "unreachable",
		"rejected",         "established",      "disconnected",   "device removal",
		"multicast join",   "multicast error",  "address change", "timewait exit",
	};
	static_assert(sizeof(texts) / sizeof(*texts) == RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);
	const auto index = static_cast<unsigned int>(event);
	return index < sizeof(texts) / sizeof(*texts) ? texts[index] : "unknown event";
}

const char *rdma_reject_msg(rdma_cm_id *, int reason)
{
	return ibcm_reject_msg(reason);
}

} // extern "C"
