/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Incoming RMPP messages. The agent that a message is for holds it until it is complete (IBA 13.6).
 */
#pragma once

#include "packet.hpp"
#include "rmpp.hpp"

#include <kern/time.hpp>

namespace mad
{

/*
 * Time without a segment after which a receiver abandons a message (IBA 13.6.3.2 leaves the total
 * to it), and time for which it answers repetitions after the end.
 */
constexpr u64 rmpp_silence_ns = 40'000'000'000;
constexpr u64 rmpp_linger_ns = 10'000'000'000;
/*
 * Maximum number of messages that one agent assembles at a time; further ones are dropped and
 * counted.
 */
constexpr unsigned rmpp_transactions_max = 64;
/*
 * Limit of the segments in all of them: as many as the longest message has. A message that would
 * exceed it is aborted.
 */
constexpr unsigned rmpp_held_max = rmpp_segments_max;

using ReceiveList = kern::List<Receive, &Receive::node>;

/*
 * Messages that an agent is receiving, and their segments so far. It neither sends nor counts, but
 * returns the answer to send. All of it is under the lock of the agent's special QP.
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
	/* Returns true if a message of this peer and transaction has begun. */
	bool knows(const Receive &receive) { return find(receive) != nullptr; }

	/*
	 * Handles a DATA segment; a segment that is kept is moved from @receive. header_bytes: size
	 * of the headers of the class. may_begin: whether a first segment may begin a message. A
	 * receipt that aborts ends the message.
	 */
	Taken take(kern::Owned<Receive> &receive, std::uint32_t header_bytes, bool may_begin,
		   u64 now);
	/* The peer abandons its message. Returns true if the message was incomplete. */
	bool give_up(const Receive &receive);
	/*
	 * Drops messages that have been silent for too long, and those for which repetitions are no
	 * longer expected.
	 */
	void expire(u64 now);
	/* Returns the next time at which expire() must be called; ~0 if there is none. */
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
		bool response; /* a request of the peer may have the same ID */
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
	unsigned held_ = 0; /* segments in them */
};

} // namespace mad
