/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Holds the outstanding sends of one agent, and finds the send to which a response belongs, and the
 * sends that have timed out. The lock of the agent's special QP protects it. This class only
 * searches: the special QP decides the outcome of a send.
 */
#pragma once

#include "send.hpp"

#include <kern/annotations.hpp>
#include <kern/time.hpp>

namespace mad
{

class PendingSends
{
public:
	bool empty() const;
	/* Adds a send. find() and expire() return it until its node is unlinked. */
	void add(Send &send) { outstanding_[bucket_of(send.header())].push_back(send); }
	/*
	 * Calls body for each send; body may unlink that send. The caller holds the locks that body
	 * needs.
	 */
	template<class Body>
	void each(Body body) const KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		for (const SendList &bucket : outstanding_)
			for (Send &send : bucket)
				body(send);
	}

	/*
	 * Returns the waiting send that a MAD responds to (same transaction and class, opposite
	 * direction), or nullptr. Without the check of the direction, a request of a peer could
	 * match this node's response to another request with the same ID, because requesters choose
	 * transaction IDs.
	 */
	Send *find(const Receive &receive) const;

	/* Starts the timeout of a response or an ACK. Returns true if it is the earliest one. */
	bool wait(Send &send, u64 now);
	/*
	 * Removes and returns the first send whose timeout has expired; nullptr if there is none.
	 */
	Send *expire(u64 now);
	/* Returns the time at which expire() must be called next; ~0 if there is none. */
	u64 earliest() const;

	/* After the n-th transmission the timeout is multiplied by n, but at most by this limit. */
	static constexpr unsigned back_off_limit = 4;

private:
	/*
	 * Programs that query paths or use umad may have thousands of sends, and each lookup holds
	 * the special QP's lock. The secret prevents a program, which chooses its transaction IDs,
	 * from filling one bucket.
	 */
	static constexpr unsigned log_buckets = 6;
	unsigned bucket_of(const ib::MadHeader &header) const
	{
		return static_cast<unsigned>(header.tid.value() * secret_ >> (64 - log_buckets));
	}

	/* Returns the send whose timeout expires first, or nullptr. */
	Send *first() const;

	const u64 secret_ = kern::random_u64() | 1;
	SendList outstanding_[1u << log_buckets];
	/*
	 * Each list is ordered by deadline. Sends in one list wait for the same multiple of their
	 * timeouts. Most timeouts are equal, so a send is usually appended at the end.
	 */
	kern::List<Send, &Send::timer_node> timed_[back_off_limit];
};

} // namespace mad
