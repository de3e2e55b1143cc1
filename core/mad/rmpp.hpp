/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the windows of a sender and of a receiver of the reliable multi-packet protocol (RMPP,
 * IBA 13.6). No function here allocates, sends or waits. The callers in special_qp_send.cpp and
 * special_qp_rmpp.cpp do that under their own locks; these functions return what must be done next.
 */
#pragma once

#include <ib/mad.hpp>

namespace mad
{

/*
 * Maximum number of segments of a message. 16 MiB is far more than any table of a subnet, and
 * limits the memory that a peer can make this side allocate.
 */
constexpr std::uint32_t rmpp_segments_max = 16 * 1024 * 1024 / ib::rmpp_mad_data_bytes;

/*
 * Number of segments that a receiver lets its sender have in flight (IBA 13.6.6.3 leaves the number
 * to the receiver).
 */
constexpr std::uint32_t rmpp_receive_window = 64;

/*
 * A sender has at most this many segments in flight, even if its receiver would accept more,
 * because all segments that an ACK permits are queued while a lock is held.
 */
constexpr std::uint32_t rmpp_send_window = 128;

/* Meaning of an ACK for the sender. */
enum class RmppAck : std::uint8_t {
	stale,     /* acknowledges no new segment */
	progress,  /* the window has moved: continue sending */
	finished,  /* the last segment is acknowledged */
	violation, /* the peer has violated the protocol: send ABORT and stop */
};

/* Actions that a DATA packet requires of the receiver. */
struct RmppReceipt {
	/* the segment is the next one in order and must be kept; others are dropped */
	bool keep;
	bool acknowledge;    /* the sender must receive an ACK now */
	std::uint8_t status; /* if not normal: send ABORT with this status and stop */

	static constexpr RmppReceipt abort(ib::RmppStatus status) { return {false, false, status}; }
	constexpr bool aborts() const { return status != ib::rmpp_status_normal; }
	constexpr bool operator==(const RmppReceipt &) const = default;
};

/*
 * The sender's half (IBA 13.6.6.2): sends the segments 1 to count(), as far as the window permits.
 */
class RmppSender
{
public:
	explicit constexpr RmppSender(std::uint32_t segments) : count_(segments) {}

	constexpr std::uint32_t count() const { return count_; }
	constexpr std::uint32_t acknowledged() const { return acknowledged_; }

	/* Returns the segment to send next; 0 while the window is closed. */
	constexpr std::uint32_t next() const
	{
		return next_ <= window_last_ && next_ <= count_ ? next_ : 0;
	}
	constexpr void sent()
	{
		if (++next_ > highest_)
			highest_ = next_;
	}

	/*
	 * Returns the oldest segment that may be in flight. An even older one is possible after
	 * retransmissions, but unlikely.
	 */
	constexpr std::uint32_t oldest_in_flight() const
	{
		return acknowledged_ < rmpp_send_window ? 1 : acknowledged_ - rmpp_send_window + 1;
	}

	/* Continues with the first unacknowledged segment. Called if no ACK has arrived in time. */
	constexpr void rewind() { next_ = acknowledged_ + 1; }

	/**
	 * on_ack() - handle an ACK packet
	 * @segment: the last segment that the receiver has in order
	 * @new_window_last: the last segment that the receiver is ready to receive; limited to
	 * @segment plus rmpp_send_window
	 * @status: set to the status to abort with, on a violation
	 */
	RmppAck on_ack(std::uint32_t segment, std::uint32_t new_window_last, std::uint8_t &status);

private:
	std::uint32_t count_;
	std::uint32_t next_ = 1;
	std::uint32_t highest_ = 1; /* one more than the highest segment sent so far */
	std::uint32_t acknowledged_ = 0;
	std::uint32_t window_last_ = 1;
};

/* The receiver's half (IBA 13.6.6.3). It accepts segments in order and determines the responses. */
class RmppReceiver
{
public:
	/* Returns the last segment received in order, which an ACK contains. */
	constexpr std::uint32_t received() const { return received_; }
	/* Returns the last segment that the sender may send, which an ACK contains. */
	constexpr std::uint32_t window_last() const { return window_last_; }
	constexpr bool complete() const { return complete_; }
	/* Returns the number of bytes in the last segment; valid if complete() is true. */
	constexpr std::uint32_t last_length() const { return last_length_; }

	/**
	 * on_data() - handle a DATA packet
	 * @header: its RMPP header
	 * @header_bytes: size of the class's own header, which the payload of every segment begins
	 * with (20 bytes for SA)
	 *
	 * A segment after a gap is dropped. The ACK contains the last segment in order, from which
	 * the sender continues.
	 */
	RmppReceipt on_data(const ib::RmppHeader &header, std::uint32_t header_bytes);

private:
	std::uint32_t received_ = 0;
	std::uint32_t window_last_ = 1;
	std::uint32_t last_length_ = 0;
	bool complete_ = false;
};

} // namespace mad
