// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * State of a queue pair in the transport engine, in addition to its context.
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
 * Packets that go out as one run (see fabric::Packet), of those that may: as much as one card
 * writes to its guest at a stretch while the other prepares the next.
 */
constexpr unsigned run_length(std::uint32_t packets, unsigned mtu)
{
	constexpr unsigned run_bytes = 64 << 10;
	return std::min<std::uint32_t>(packets, run_bytes / mtu);
}

/* A send work request from its WQE's fetching to its completion. */
struct SendWork {
	SendRequest request;
	std::uint16_t index = 0;
	Psn first;
	/* PSNs that it takes; 0 for what the card does by itself. */
	std::uint32_t packets = 0;
	/* Known to fail; completes so when all before it have completed. */
	Syndrome failure = Syndrome::none;
	/* Some of it was sent, or done. */
	bool started = false;
	/* True if the request only has to be completed in its turn. */
	bool finished = false;

	Psn end() const { return first + packets; }
};

/*
 * The sending half of a connected QP. UD and MLX use only `next_wqe`, `rung` and `psn`, and `work`
 * for a large send.
 */
struct RequesterState {
	/* Free-running index of the WQE to be fetched next. */
	std::uint16_t next_wqe = 0;
	/*
	 * The doorbell has rung since the queue was last found empty. The queue is not looked at
	 * before: that of an XRC target is never made ready for it, and full of what looks posted.
	 */
	bool rung = false;
	/* PSN for the next request. */
	Psn psn;

	/* Requests that were fetched and have not completed, in order. */
	std::deque<std::unique_ptr<SendWork>> work;
	/* The one being sent; work.size() if the next must be fetched. */
	std::size_t cursor = 0;
	/* The packet to be sent next, within work[cursor]; goes back for a retry. */
	Psn next;
	/* The oldest packet not acknowledged; in a read, the response that is due. */
	Psn unacknowledged;
	/* One beyond the newest packet ever sent. */
	Psn limit;
	/* Bytes sent since the last packet that asked for an acknowledge. */
	std::uint32_t unrequested = 0;
	/* Reads and atomics that were sent and have not completed. */
	unsigned reads = 0;
	unsigned retries_left = 0;
	unsigned rnr_retries_left = 0;
	/*
	 * The packet from which all is being sent again because the other end has shown that it is
	 * lost. Whatever was under way behind it shows the same once more, and counts no more.
	 */
	std::optional<Psn> recovering;
	/* An RNR NAK said to wait; the deadline says until when. */
	bool rnr_wait = false;
	/* A request that failed is in the queue: nothing behind it is fetched. */
	bool stopped = false;
	/* Requests completed, IBA 9.7.5.1.5. */
	std::uint32_t ssn = 0;

	/* UD: how far the large send has got that is the only request in `work`. */
	std::optional<LargeSend> large;
};

/* A read to be answered, or an atomic whose answer is known. */
struct Response {
	bool is_read = false;
	/* Sent once before. */
	bool repeated = false;
	/* The next response to be sent, and how many are left. */
	Psn next;
	std::uint32_t packets = 0;
	/* The first packet of the answer is still to come. */
	bool first = true;
	std::uint64_t address = 0;
	std::uint32_t rkey = 0;
	std::uint32_t pd = 0;
	std::uint64_t length = 0;
	std::uint64_t original = 0;
	std::uint32_t msn = 0;
};

/* A read or atomic that was carried out, kept for duplicates of the request. */
struct DoneRequest {
	Psn first;
	std::uint32_t packets = 0;
	bool is_read = false;
	std::uint64_t original = 0;
	std::uint32_t msn = 0;
};

/* The receiving half of a connected QP. UD and MLX use only `next_wqe`. */
struct ResponderState {
	/* Free-running index of the receive WQE to be taken next. */
	std::uint16_t next_wqe = 0;
	Psn expected;
	std::uint32_t msn = 0;
	bool established = false;

	/* The message of which more packets are to come. */
	enum class Message : std::uint8_t { none, send, write } message = Message::none;
	/* UC: the rest of the message is to be dropped. */
	bool discard = false;
	ReceiveWork receive;
	/* The write under way. */
	std::uint64_t write_address = 0;
	std::uint32_t write_rkey = 0;
	std::uint32_t write_left = 0;
	std::uint32_t write_length = 0;

	/* A NAK was sent for the expected PSN: no other until it arrives. */
	bool nak_sent = false;
	/* An acknowledge to be sent behind the responses. */
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

	/* The packet that found no credit; nothing is generated before it is gone. */
	std::optional<fabric::Packet> waiting;
	/* Guest memory that packets under way may refer to; kept by Leases. */
	struct Lent {
		std::uint32_t key = 0;
		const MemoryMapping *mapping = nullptr;
		std::weak_ptr<fabric::Lease> lease;
	};
	std::vector<Lent> lent;
	/* In the engine's run queue. */
	QpLink queued;
	/* The engine's lane that it waits for, if any; linked into that lane's list. */
	std::optional<std::size_t> blocked;
	QpLink on_lane;
	/* Events that the guest's queue had no room for, a bit each; then it is among those. */
	std::uint8_t untold = 0;
	QpLink has_untold;
	/* Must fail at the next occasion: its completion queue has. */
	bool broken = false;

	/* When the QP wants to be called; see Engine::set_deadline(). */
	std::optional<TimePoint> deadline;
	/* When the engine's timer will look at it: not later than the deadline. */
	std::optional<TimePoint> timer;
	/* In the error state: pause between two looks for new receive WQEs. */
	Duration poll_pause{};
	/* At the longest pause: in the engine's list of quiet QPs. */
	QpLink quiet;
	bool last_wqe_reported = false;

	bool is_connected() const
	{
		return pair.service == ServiceType::rc || pair.service == ServiceType::xrc;
	}
	/* Has an owner that takes part in transport: not the states before RTR, nor ERR. */
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
