/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An RMPP message on its way in, held by the agent that it is for until it is whole.
 */
#pragma once

#include "packet.hpp"
#include "rmpp.hpp"

#include <kern/time.hpp>

namespace mgmt
{

/* Silence after which a receiver gives up (IBA 13.6.3.2 leaves the total to it), and how long it answers repetitions after the end. */
constexpr u64 rmpp_silence_ns = 40'000'000'000;
constexpr u64 rmpp_linger_ns = 10'000'000'000;
/* Messages that one agent assembles at a time; more are dropped and counted. */
constexpr unsigned rmpp_transactions_max = 64;
/* Segments that they may hold together: as many as the longest message has. What goes beyond is aborted. */
constexpr unsigned rmpp_held_max = rmpp_segments_max;

using ReceiveList = kern::List<Receive, &Receive::node>;

/* One message: the peer and its transaction id name it. All under the special QP's lock. */
struct RmppTransaction {
	kern::ListNode node; /* in Agent::rmpp_transactions */
	RmppReceiver receiver;
	ReceiveList segments;
	unsigned held = 0; /* of them */
	ib::be64 tid;
	u32 slid;
	u32 src_qp;
	u8 mgmt_class;
	bool response; /* a question of the peer may have the same id */
	u64 deadline;

	bool matches(const Receive &receive) const
	{
		return tid == receive.header().tid && mgmt_class == receive.header().mgmt_class &&
		       response == receive.is_response() && slid == receive.completion.slid && src_qp == receive.completion.src_qp;
	}
	~RmppTransaction();
};

} // namespace mgmt
