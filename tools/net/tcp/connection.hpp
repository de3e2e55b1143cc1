// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a TCP connection (RFC 9293) for an RNIC. Received data is passed to the user at once,
// so the receive window is always fully open. The data of each write is sent in segments of its
// own: it is not merged with other writes, and is split only if it exceeds the maximum segment size
// or the send window. Window scaling, timestamps, SACK and urgent data are not implemented.
//
// Everything runs on one loop. The callbacks of class User may call write(), close() and abort().
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/loop.hpp"
#include "net/tcp/congestion.hpp"
#include "net/tcp/timing.hpp"
#include "net/tcp/wire.hpp"

namespace weft::tcp
{

struct Endpoint {
	Ip address = 0;
	std::uint16_t port = 0;
	auto operator<=>(const Endpoint &) const = default;
};

// The local and the remote endpoint.
struct Pair {
	Endpoint local, remote;
	auto operator<=>(const Pair &) const = default;
};

enum class End {
	closed,      // both sides have closed in an orderly way
	aborted,     // abort() was called
	reset,       // the peer has reset the connection
	timed_out,   // the peer did not answer in time
	unreachable, // the peer's hardware address could not be resolved
};

// User of a connection.
class User
{
public:
	virtual ~User() = default;

	virtual void connected() = 0;
	virtual void received(View bytes) = 0;
	// Called when there is space again after write() has refused data.
	virtual void writable() = 0;
	// Called when the peer will send no more data.
	virtual void peer_closed() = 0;
	// Called once, as the last callback.
	virtual void ended(End how) = 0;
};

enum class State {
	closed,
	syn_sent,
	syn_received,
	established,
	fin_wait1,
	fin_wait2,
	close_wait,
	closing,
	last_ack,
	time_wait,
};

class Connection
{
public:
	static constexpr std::uint16_t kWindow = 0xffff;
	// Limit of the bytes that were written and not acknowledged.
	static constexpr std::size_t kMostQueued = 256 << 10;
	// Limit of out-of-order pieces; their total size is limited by the window.
	static constexpr std::size_t kMostEarly = 64;
	// Number of retransmissions, or of unanswered probes of a closed window, before the
	// connection is dropped. That takes about nine minutes; RFC 9293 section 3.8.3 requires at
	// least 100 s. Connections that are not established have fewer tries.
	static constexpr unsigned kMostTries = 15;
	static constexpr unsigned kMostOpeningTries = 6;
	// An acknowledgement is delayed by kDelayedAck, so that a data segment can carry it. The
	// port number of a closed connection is reserved for kTimeWait (four minutes in the RFC).
	static constexpr Clock::duration kDelayedAck = std::chrono::milliseconds(20);
	static constexpr Clock::duration kTimeWait = std::chrono::seconds(10);
	// Timeout for a peer that sends nothing after this side has closed.
	static constexpr Clock::duration kFinWait = std::chrono::seconds(60);
	// Minimum time between answers to invalid segments without data (RFC 5961 section 7).
	static constexpr Clock::duration kChallenge = std::chrono::milliseconds(500);

	struct Setup {
		Pair pair;
		std::uint16_t mss; // maximum segment size in both directions
		std::uint32_t first_sequence;
		std::function<void(const Segment &)> send;
		// Returns the number of bytes that the connection may buffer now in each direction,
		// if that is less than its own limits.
		std::function<std::size_t()> share;
		// Called when a passive connection is established, and when any connection is
		// removed.
		std::function<void()> established, over;
	};

	// Without @syn, the connection is active and sends a SYN; with the peer's @syn, it is
	// passive.
	Connection(Loop &loop, Setup setup, const Segment *syn);
	Connection(const Connection &) = delete;
	Connection &operator=(const Connection &) = delete;

	const Pair &pair() const { return setup_.pair; }
	State state() const { return state_; }
	// Returns the maximum number of bytes in a segment.
	std::size_t mss() const { return mss_; }
	// If null, there are no more callbacks.
	void set_user(User *user) { user_ = user; }

	// Takes all of @bytes, or nothing if there is too little space or the connection cannot
	// send any more. Returns whether it has taken them.
	bool write(View bytes);
	std::size_t room() const
	{
		// The stack may have been destroyed already.
		if (!may_send())
			return 0;
		const std::size_t most = std::min(kMostQueued, setup_.share());
		return most - std::min(most, queued_);
	}
	// Returns the number of bytes that were received out of order and wait for earlier ones.
	std::size_t early() const { return early_bytes_; }
	// Closes the connection after all data that was written has been sent.
	void close();
	// Resets the connection at once; the peer is notified.
	void abort();
	// Called by the stack to end the connection.
	void fail(End how);

	// Handles a segment of this connection, whose checksum is correct.
	void take(const Segment &segment);

private:
	void enter(State state);
	void end(End how);

	// Receive processing, RFC 9293 section 3.10.7.
	void take_syn_sent(const Segment &segment);
	bool acceptable(const Segment &segment) const;
	bool take_acknowledgement(const Segment &segment);
	void acknowledged(std::uint32_t upto);
	void duplicate();
	void finished_sending();
	void take_data(const Segment &segment);
	void deliver(std::uint64_t offset, View bytes);
	void deliver_early();
	void keep_early(std::uint64_t offset, View bytes);
	void take_fin();
	void report_closed();

	void send(std::uint8_t flags, std::uint32_t sequence, View payload = {});
	void acknowledge_now();
	void challenge(const Segment &segment);
	std::uint32_t acceptable_sequence() const;
	void send_synchronise();
	void send_available();
	void resend_first();
	View written_at(std::uint32_t sequence) const;
	void timer_fired();
	void arm();
	Clock::duration retransmission_timeout();

	std::uint32_t in_flight() const { return next_ - first_; }
	bool opening() const { return state_ == State::syn_sent || state_ == State::syn_received; }
	// Returns true in states in which the timer is not for retransmissions.
	bool waiting() const { return state_ == State::fin_wait2 || state_ == State::time_wait; }
	bool may_send() const
	{
		return state_ == State::established || state_ == State::close_wait;
	}

	Loop &loop_;
	const Setup setup_;
	User *user_ = nullptr;
	State state_ = State::closed;
	std::uint32_t mss_;

	// Sequence numbers of sent data: the first byte that is not acknowledged, the next byte to
	// send, and the byte after the last one that was sent.
	std::uint32_t first_, next_, highest_;
	std::uint32_t peer_window_ = 0, window_sequence_ = 0, window_acknowledgement_ = 0;
	std::deque<Bytes> written_; // data from first_, one entry per segment
	std::size_t queued_ = 0;
	bool blocked_ = false; // a write() was refused
	bool closing_ = false; // a FIN follows
	Congestion congestion_;
	std::uint32_t recover_ = 0; // highest_ at the detection of a loss; never far behind first_
	RoundTrip round_trip_;
	// The segment whose round trip is measured: its end, and the time when it was sent.
	std::optional<std::pair<std::uint32_t, Clock::time_point>> timed_;
	unsigned tries_ = 0;

	// Receive side.
	std::uint32_t expected_ = 0;
	std::uint64_t received_ = 0;           // number of bytes up to expected_
	std::map<std::uint64_t, Bytes> early_; // keyed by offset, without overlaps
	std::size_t early_bytes_ = 0;
	std::optional<std::uint64_t> fin_at_;
	unsigned unacknowledged_ = 0; // number of unacknowledged segments
	std::optional<Clock::time_point> challenged_, asked_back_;

	// expires if an acknowledgement is late, or at the end of FinWait2 or TimeWait
	Timer timer_;
	Timer ack_timer_;
};

} // namespace weft::tcp
