// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a queue pair of any channel adapter. The driver's commands create it and set its
// attributes. The transport engine reads the attributes, changes the QP's state if packets require
// it, and attaches state of its own. Each card model derives a class from it, with the state that
// only this model has.
#pragma once

#include <cstdint>
#include <memory>

#include <ib/types.hpp>

#include "cards/hca/types.hpp"

namespace weft::hca
{

// AddressPath - the address to which a connected queue pair sends.
struct AddressPath {
	bool force_loopback = false;
	bool grh = false;
	std::uint8_t port = 1; // 1 or 2
	std::uint8_t pkey_index = 0;
	std::uint8_t source_path_bits = 0;
	std::uint16_t remote_lid = 0;
	std::uint8_t ack_timeout = 0; // 4.096 us * 2^n; 0: none
	std::uint8_t sgid_index = 0;
	std::uint8_t static_rate = 0; // 0: as fast as the port
	std::uint8_t hop_limit = 0;
	std::uint8_t sl = 0;
	std::uint8_t traffic_class = 0;
	std::uint32_t flow_label = 0;
	ib::Gid remote_gid{};
};

// TransportState - the transport engine's state of a queue pair. It is destroyed with the queue
// pair.
class TransportState
{
public:
	virtual ~TransportState() = default;
};

// QueuePairAttributes - the attributes that the driver has set.
struct QueuePairAttributes {
	// The full 24-bit number, which packets contain. The table index has fewer bits.
	std::uint32_t qpn = 0;
	// The state, which commands set. They notify the transport. The transport itself may set
	// err, sqer, and at the end of draining, sqd.
	QpState state = QpState::reset;
	ServiceType service = ServiceType::rc;
	std::int8_t special = -1; // 0: QP0 of its port, 1: QP1, -1: not special
	// The source QP number of its datagrams, to which responses are sent, or 0 if it is its own
	// number.
	std::uint32_t sends_as = 0;
	// True if the card selects the receive queue of each datagram by its headers
	// (WorkSource::take_datagram()).
	bool steered = false;

	std::uint32_t pd = 0;
	std::uint32_t send_cqn = 0;
	std::uint32_t receive_cqn = 0;
	bool uses_srq = false; // there is no receive queue then
	std::uint32_t srqn = 0;
	std::uint16_t xrc_domain = 0;

	bool has_receive_queue = true; // false if it has no receive queue
	bool reserved_lkey = false;
	bool fast_register = false;
	bool responder_invalid_credits = false;
	bool remote_read = false;
	bool remote_write = false;
	bool remote_atomic = false;
	// Maximum size of received messages, and of results of reads and atomics, that are stored
	// in the completion and not in memory. It is at most kCompletionDataMax; 0 disables this.
	std::uint8_t inline_receive = 0;
	std::uint8_t inline_response = 0;

	std::uint8_t mtu = 0; // ib::Mtu encoding
	std::uint8_t log_max_message = 31;
	std::uint32_t remote_qpn = 0;
	AddressPath path;
	std::uint32_t qkey = 0;
	std::uint8_t retry_count = 0;
	std::uint8_t rnr_retry = 0;     // 7: infinite
	std::uint8_t min_rnr_timer = 0; // encoded
	std::uint8_t log_requester_reads = 0;
	std::uint8_t log_responder_reads = 0;
	std::uint8_t ack_request_frequency = 0;
	// Returns the source QP number of its datagrams. QP0 and QP1 send as 0 and 1, although the
	// driver may know them by other numbers.
	std::uint32_t datagram_source() const
	{
		if (special >= 0)
			return static_cast<std::uint32_t>(special);
		return sends_as ? sends_as : qpn;
	}
	// Returns true if the state permits send requests, which is so from RTS on (IBA 10.8.2). An
	// earlier send doorbell is ignored: the requests stay in their queue, and the next doorbell
	// makes the card read them.
	bool accepts_send_doorbell() const { return state > QpState::rtr; }

	// The PSNs that INIT2RTR and RTR2RTS set. The transport updates its own copies.
	std::uint32_t initial_receive_psn = 0;
	std::uint32_t initial_send_psn = 0;
	// True if RTS2SQD requested an event at the end of draining.
	bool sqd_event = false;
};

struct QueuePair : QueuePairAttributes {
	virtual ~QueuePair() = default;

	std::unique_ptr<TransportState> transport;
};

// QueuePairProgress - values of QUERY_QP that the transport provides.
struct QueuePairProgress {
	std::uint32_t next_send_psn = 0;
	std::uint32_t next_receive_psn = 0;
	std::uint32_t last_acked_psn = 0;
	std::uint32_t receive_msn = 0;
	std::uint32_t ssn = 0;
	std::uint16_t sq_counter = 0;
	std::uint16_t rq_counter = 0;
	std::uint8_t current_retry = 0;
	std::uint8_t current_rnr_retry = 0;
};

} // namespace weft::hca
