// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Counts transport errors since the last reset, as the command DIAG_RPRT reports them. The counters
// wrap around.
#pragma once

#include <cstdint>

namespace weft::hca
{

struct Diagnostics {
	std::uint32_t rq_local_length = 0;
	std::uint32_t sq_local_length = 0;
	std::uint32_t rq_local_qp_operation = 0;
	std::uint32_t sq_local_qp_operation = 0;
	std::uint32_t rq_local_protection = 0;
	std::uint32_t sq_local_protection = 0;
	std::uint32_t rq_flushed = 0;
	std::uint32_t sq_flushed = 0;
	std::uint32_t sq_window_bind = 0;
	std::uint32_t sq_bad_response = 0;
	std::uint32_t sq_remote_invalid_request = 0;
	std::uint32_t rq_remote_invalid_request = 0;
	std::uint32_t sq_remote_access = 0;
	std::uint32_t rq_remote_access = 0;
	std::uint32_t sq_remote_operation = 0;
	std::uint32_t sq_retries_exceeded = 0;
	std::uint32_t sq_rnr_retries_exceeded = 0;
	std::uint32_t rq_rnr_naks = 0;
	std::uint32_t sq_rnr_naks = 0;
	std::uint32_t rq_out_of_sequence = 0;
	std::uint32_t sq_out_of_sequence = 0;
	std::uint32_t rq_ud_discarded = 0;
	// Multicast packets that were dropped because the queue for replication was full.
	std::uint32_t multicast_dropped = 0;
	std::uint32_t cq_overflows = 0;
	// Doorbells on another UAR page than that of the queue, or for an object that does not
	// exist.
	std::uint32_t bad_doorbells = 0;
};

} // namespace weft::hca
