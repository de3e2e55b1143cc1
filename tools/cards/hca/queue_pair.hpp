// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A queue pair of any channel adapter. The card's commands own it and change it; the transport
// engine reads it, changes its state if packets require it, and attaches its own state. Each card
// derives a class from it to add its own state.
#pragma once

#include <cstdint>
#include <memory>

#include <ib/types.hpp>

#include "cards/hca/types.hpp"

namespace weft::hca
{

// AddressPath - how packets of a connected queue pair reach the other end.
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

// TransportState - what the transport engine keeps for a queue pair; destroyed with it.
class TransportState
{
public:
	virtual ~TransportState() = default;
};

// QueuePairAttributes - what the driver gave the queue pair.
struct QueuePairAttributes {
	// All 24 bits, for comparison with the wire: the table is indexed with fewer.
	std::uint32_t qpn = 0;
	// Commands change it, and tell the transport. The transport itself may set err, sqer, and
	// sqd at the end of draining.
	QpState state = QpState::reset;
	ServiceType service = ServiceType::rc;
	std::int8_t special = -1; // 0: QP0 of its port, 1: QP1, -1: an ordinary one
	// The source QP number of its datagrams, to which answers go; 0: its own number.
	std::uint32_t sends_as = 0;
	// The card chooses the receive queue of each datagram by the datagram's headers
	// (WorkSource::take_datagram()).
	bool steered = false;

	std::uint32_t pd = 0;
	std::uint32_t send_cqn = 0;
	std::uint32_t receive_cqn = 0;
	bool uses_srq = false; // then there is no receive queue
	std::uint32_t srqn = 0;
	std::uint16_t xrc_domain = 0;

	bool has_receive_queue = true; // of its own
	bool reserved_lkey = false;
	bool fast_register = false;
	bool responder_invalid_credits = false;
	bool remote_read = false;
	bool remote_write = false;
	bool remote_atomic = false;
	// Messages, and answers to reads and atomics, of up to so many bytes go into their
	// completions and not into memory; completion_data_max at the most, 0: none.
	std::uint8_t inline_receive = 0;
	std::uint8_t inline_response = 0;

	std::uint8_t mtu = 0; // ib::Mtu encoding
	std::uint8_t log_max_message = 31;
	std::uint32_t remote_qpn = 0;
	AddressPath path;
	std::uint32_t qkey = 0;
	std::uint8_t retry_count = 0;
	std::uint8_t rnr_retry = 0;     // 7: for ever
	std::uint8_t min_rnr_timer = 0; // encoded
	std::uint8_t log_requester_reads = 0;
	std::uint8_t log_responder_reads = 0;
	std::uint8_t ack_request_frequency = 0;
	// The number that is the source of its datagrams. Cards on which QP0 and QP1 send as any
	// other have numbers of their own for them.
	std::uint32_t datagram_source() const
	{
		if (special >= 0)
			return static_cast<std::uint32_t>(special);
		return sends_as ? sends_as : qpn;
	}
	// Requests may be posted from RTS on (IBA 10.8.2). A send doorbell before that is dropped:
	// the requests stay in their queue, and the next doorbell finds them.
	bool accepts_send_doorbell() const { return state > QpState::rtr; }

	// Set by INIT2RTR and RTR2RTS; the transport goes on from there.
	std::uint32_t initial_receive_psn = 0;
	std::uint32_t initial_send_psn = 0;
	// RTS2SQD asked for an event at the end of draining.
	bool sqd_event = false;
};

struct QueuePair : QueuePairAttributes {
	virtual ~QueuePair() = default;

	std::unique_ptr<TransportState> transport;
};

// QueuePairProgress - the transport's share of QUERY_QP.
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
