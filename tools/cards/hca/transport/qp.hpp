// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the state of a queue pair that the transport engine keeps, in addition to the attributes
 * that commands set (hca::QueuePair).
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <ib/packet.hpp>

#include "cards/hca/queue_pair.hpp"
#include "cards/hca/transport/ip_offload.hpp"
#include "cards/hca/transport/psn.hpp"
#include "cards/hca/transport/qp_list.hpp"
#include "cards/hca/requests.hpp"
#include "cards/hca/transport/timing.hpp"
#include "net/fabric/packet.hpp"

namespace weft::hca::transport
{

/*
 * Returns how many of @packets are sent as one run (see fabric::Packet). Its length is limited, so
 * that one card prepares the next run while the other writes the previous one to its guest.
 */
constexpr unsigned run_length(std::uint32_t packets, unsigned mtu)
{
	constexpr unsigned run_bytes = 64 << 10;
	return std::min<std::uint32_t>(packets, run_bytes / mtu);
}

/* A send work request, from the fetch of its WQE to its completion. */
struct SendWork {
	SendRequest request;
	std::uint16_t index = 0;
	Psn first;
	/* Number of PSNs; 0 for requests that the card executes itself. */
	std::uint32_t packets = 0;
	/*
	 * An error that is already known. The request completes with it when all earlier requests
	 * have completed.
	 */
	Syndrome failure = Syndrome::none;
	/* True if a part of the request was sent or executed. */
	bool started = false;
	/* True if the request has been executed. It completes after all earlier requests. */
	bool finished = false;

	Psn end() const { return first + packets; }
};

/*
 * The requester of a connected QP. UD and MLX use only `next_wqe`, `rung` and `psn`, and `work` for
 * a large send.
 */
struct RequesterState {
	/* Free-running index of the next WQE to fetch. */
	std::uint16_t next_wqe = 0;
	/*
	 * True if the doorbell was rung since the queue was last found empty. The queue is not read
	 * before that, because the kernel never initialises the send queue of an XRC target, and
	 * its contents may look like posted requests.
	 */
	bool rung = false;
	/* PSN of the next request. */
	Psn psn;

	/* Fetched requests that have not completed, in order. */
	std::deque<std::unique_ptr<SendWork>> work;
	/*
	 * Index of the request that is being sent, or work.size() if the next request must be
	 * fetched.
	 */
	std::size_t cursor = 0;
	/* The next packet to send, within work[cursor]. It moves back for a retry. */
	Psn next;
	/* The oldest unacknowledged packet, or in a read, the expected response. */
	Psn unacknowledged;
	/* One more than the highest PSN ever sent. */
	Psn limit;
	/* Bytes sent since the last packet with an acknowledge request. */
	std::uint32_t unrequested = 0;
	/* Number of outstanding reads and atomics. */
	unsigned reads = 0;
	unsigned retries_left = 0;
	unsigned rnr_retries_left = 0;
	/*
	 * First packet of the current retransmission, if the peer has reported a loss. Later
	 * packets that were in flight cause the same report again, which is ignored.
	 */
	std::optional<Psn> recovering;
	/* True after an RNR NAK. The deadline is then the end of the wait. */
	bool rnr_wait = false;
	/* True if a failed request is in the queue. Later requests are then not fetched. */
	bool stopped = false;
	/* Number of completed requests (IBA 9.7.5.1.5). */
	std::uint32_t ssn = 0;

	/* UD: progress of the large send, which is then the only request in `work`. */
	std::optional<LargeSend> large;
};

/* The response to a read, or to an atomic whose result is known. */
struct Response {
	bool is_read = false;
	/* True if the response has been sent before. */
	bool repeated = false;
	/* The next packet of the response, and the number of packets that are left. */
	Psn next;
	std::uint32_t packets = 0;
	/* True until the first packet of the response has been sent. */
	bool first = true;
	std::uint64_t address = 0;
	std::uint32_t rkey = 0;
	std::uint32_t pd = 0;
	std::uint64_t length = 0;
	std::uint64_t original = 0;
	std::uint32_t msn = 0;
};

/* An executed read or atomic, kept for duplicates of the request. */
struct DoneRequest {
	Psn first;
	std::uint32_t packets = 0;
	bool is_read = false;
	std::uint64_t original = 0;
	std::uint32_t msn = 0;
};

/* The responder of a connected QP. UD and MLX use only `next_wqe`. */
struct ResponderState {
	/* Free-running index of the next receive WQE. */
	std::uint16_t next_wqe = 0;
	Psn expected;
	std::uint32_t msn = 0;
	bool established = false;

	/* Kind of the message of which some packets have not arrived. */
	enum class Message : std::uint8_t { none, send, write } message = Message::none;
	/* UC: true if the rest of the message must be dropped. */
	bool discard = false;
	ReceiveWork receive;
	/* Target of the incomplete write. */
	std::uint64_t write_address = 0;
	std::uint32_t write_rkey = 0;
	std::uint32_t write_left = 0;
	std::uint32_t write_length = 0;

	/*
	 * True if a NAK was sent for the expected PSN. No other NAK is sent until that packet
	 * arrives.
	 */
	bool nak_sent = false;
	/* An acknowledgement to be sent after the pending responses. */
	struct Ack {
		Psn psn;
		std::uint8_t syndrome = 0;
	};
	std::optional<Ack> ack;
	std::deque<Response> responses;
	/* The last 2^rra_max reads and atomics. */
	std::deque<DoneRequest> done;
};

struct Qp final : TransportState {
	explicit Qp(QueuePair &owner) : pair(owner) {}

	QueuePair &pair;
	RequesterState send;
	ResponderState receive;

	/* A packet without credit. No further packets are created before it is sent. */
	std::optional<fabric::Packet> waiting;
	/* Guest memory to which packets in flight may refer; maintained by Leases. */
	struct LeasedMemory {
		std::uint32_t key = 0;
		const MemoryMapping *mapping = nullptr;
		std::weak_ptr<fabric::Lease> lease;
	};
	std::vector<LeasedMemory> leased;
	/* Membership in the engine's run queue. */
	QpLink queued;
	/*
	 * The lane of the engine for which the QP waits, if any, and its membership in the lane's
	 * list.
	 */
	std::optional<std::size_t> blocked;
	QpLink on_lane;
	/*
	 * A bit for each event for which the guest's event queue had no space, and membership in
	 * the engine's list of QPs with such events.
	 */
	std::uint8_t pending_events = 0;
	QpLink pending_events_link;
	/*
	 * True if the completion queue has failed, so that the QP will be moved to the error state.
	 */
	bool broken = false;

	/* Time at which the requester's timeout expires; see Engine::set_deadline(). */
	std::optional<TimePoint> deadline;
	/* Polling interval for new receive WQEs in the error state. */
	std::optional<TimePoint> timer;
	/* In the error state: polling interval for new receive WQEs. */
	Duration poll_pause{};
	/* Membership in the engine's list of quiet QPs, which have reached the longest interval. */
	QpLink quiet;
	bool last_wqe_reported = false;

	bool is_connected() const
	{
		return pair.service == ServiceType::rc || pair.service == ServiceType::xrc;
	}
	/* Returns false before RTR and in ERR, in which the QP does not take part in transport. */
	bool can_receive() const
	{
		return pair.state != QpState::reset && pair.state != QpState::init &&
		       pair.state != QpState::err;
	}
	bool can_send() const
	{
		return pair.state == QpState::rts || pair.state == QpState::sq_draining ||
		       pair.state == QpState::sqd;
	}
	unsigned mtu() const { return ib::mtu_bytes(static_cast<ib::Mtu>(pair.mtu)); }
	unsigned reads_max() const { return 1u << pair.log_requester_reads; }
	unsigned responses_max() const { return 1u << pair.log_responder_reads; }
	KeyUse key_use(std::uint32_t key, KeyAccess access) const
	{
		return {key, access, pair.pd, pair.qpn, pair.reserved_lkey};
	}
};

} // namespace weft::hca::transport
