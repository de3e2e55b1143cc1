// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the types that the transport uses for any channel adapter: states, services, requests and
// results. Each card converts them to and from its own encoding.
#pragma once

#include <cstdint>

namespace weft::hca
{

// The states of IBA 10.3.1; sq_draining is SQD before draining has ended.
enum class QpState : std::uint8_t { reset, init, rtr, rts, sqer, sqd, err, sq_draining };

enum class ServiceType : std::uint8_t {
	rc,
	uc,
	ud,
	xrc,
	whole_packet, // software creates the packet from LRH to ICRC: QP0 and QP1 of some cards
};

enum class SendOpcode : std::uint8_t {
	nop,
	send,
	send_imm,
	send_invalidate,
	lso,
	rdma_write,
	rdma_write_imm,
	rdma_read,
	compare_swap,
	fetch_add,
	masked_compare_swap,
	masked_fetch_add,
	bind_window,
	fast_register,
	local_invalidate,
	update_key, // has the card's own format
};

// Operation of a completed receive.
enum class ReceiveOpcode : std::uint8_t { send, send_imm, send_invalidate, rdma_write_imm };

// Errors of work requests. The responder detects those from local_access to remote_operation. The
// requester detects the others.
enum class Syndrome : std::uint8_t {
	none,
	local_length,
	local_qp_operation,
	local_protection,
	flushed,
	window_bind,
	bad_response,
	// A receive fails with this error if the remote key of its RDMA WRITE with immediate is
	// invalid.
	local_access,
	remote_invalid_request,
	remote_access,
	remote_operation,
	retry_exceeded,
	rnr_retry_exceeded,
};

// Asynchronous events of queue pairs (IBA 11.6.3).
enum class Event : std::uint8_t {
	communication_established,
	sq_drained,
	wq_catastrophic,
	wq_invalid_request,
	wq_access_violation,
	last_wqe_reached,
};

} // namespace weft::hca
