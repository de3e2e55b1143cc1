/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Stores the incoming RMPP messages of an agent until they are complete (IBA 13.6). */
#pragma once

#include "packet.hpp"
#include "rmpp.hpp"

#include <kern/time.hpp>

namespace mad
{

/*
 * rmpp_silence_ns: a receiver abandons a message if no segment arrives for this time (IBA 13.6.3.2
 * leaves the value to the receiver). rmpp_linger_ns: time after completion during which repeated
 * segments are still answered.
 */
constexpr u64 rmpp_silence_ns = 40'000'000'000;
constexpr u64 rmpp_linger_ns = 10'000'000'000;
/*
 * Maximum number of messages that one agent assembles at a time. The segments of additional
 * messages are dropped and counted.
 */
constexpr unsigned rmpp_transactions_max = 64;
/*
 * Maximum number of segments in all incomplete messages of an agent: the size of one message of
 * maximum length. A message that would exceed it is aborted.
 */
constexpr unsigned rmpp_held_max = rmpp_segments_max;

using ReceiveList = kern::List<Receive, &Receive::node>;

/*
 * The messages that an agent is receiving, with the segments received so far. This class neither
 * sends nor counts MADs; it returns the response that must be sent. Protected by the lock of the
 * agent's special QP.
 */
class RmppReception
{
public:
	/* Result of taking a segment. */
	struct Taken {
		/*
		 * the segment neither belongs to a message nor begins one, or there is no
		 * space for another message
		 */
		bool discarded = false;
		RmppReceipt receipt{};
		std::uint32_t received = 0; /* for an ACK: the last segment received in order */
		/* for an ACK: the last segment that the sender may send */
		std::uint32_t window_last = 0;
		/* the complete message, if this was its last segment */
		kern::Owned<Receive> message;
	};

	bool empty() const { return transactions_.empty(); }
	/* Returns true if a message of this peer with this transaction ID has begun. */
	bool knows(const Receive &receive) { return find(receive) != nullptr; }

	/*
	 * Handles a DATA segment; a segment that is kept is moved from @receive. @header_bytes:
	 * size of the headers of the class. @may_begin: a first segment may begin a message. If the
	 * returned receipt requires an ABORT, the message has been dropped.
	 */
	Taken take(kern::Owned<Receive> &receive, std::uint32_t header_bytes, bool may_begin,
		   u64 now);
	/*
	 * Drops the message that the peer has abandoned. Returns true if the message was
	 * incomplete.
	 */
	bool give_up(const Receive &receive);
	/*
	 * Drops messages that have been silent for too long, and completed messages whose
	 * rmpp_linger_ns has passed.
	 */
	void expire(u64 now);
	/* Returns the time at which expire() must be called next; ~0 if there is none. */
	u64 earliest() const;
	void clear();

private:
	/* A message, identified by its peer and its transaction ID. */
	struct Transaction {
		kern::ListNode node;
		RmppReceiver receiver;
		ReceiveList segments;
		unsigned held = 0; /* number of segments */
		ib::be64 tid;
		u32 slid;
		u32 src_qp;
		u8 mgmt_class;
		bool response; /* this is a response; a request of the peer may have the same ID */
		u64 deadline;

		bool matches(const Receive &receive) const
		{
			return tid == receive.header().tid &&
			       mgmt_class == receive.header().mgmt_class &&
			       response == receive.is_response() &&
			       slid == receive.completion.slid &&
			       src_qp == receive.completion.src_qp;
		}
		~Transaction();
	};

	Transaction *find(const Receive &receive);
	Transaction *begin(const Receive &receive);
	bool make_room();
	void end(Transaction &transaction);
	static kern::Owned<Receive> assemble(Transaction &transaction, std::uint32_t header_bytes);

	kern::List<Transaction, &Transaction::node> transactions_;
	unsigned held_ = 0; /* number of segments in all transactions */
};

} // namespace mad
