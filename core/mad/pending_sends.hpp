/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The outstanding sends of one agent. Finds the send that a response belongs to, and the sends that
 * have timed out. Protected by the lock of the agent's special QP. It only searches: the special QP
 * decides how a send ends.
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
	/* Adds a send. find() and expire() find it until it is unlinked by its node. */
	void add(Send &send) { outstanding_[bucket_of(send.header())].push_back(send); }
	/*
	 * Calls body for each send; body may unlink that send. The caller holds the locks it
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
	 * direction), or nullptr. The requester chooses transaction IDs, so without the check of
	 * the direction a local response to a peer that uses the same ID would match.
	 */
	Send *find(const Receive &receive) const;

	/*
	 * Starts the timeout of a response or an ACK. Returns true if no other one is due earlier.
	 */
	bool wait(Send &send, u64 now);
	/* Removes the first send whose time has expired; nullptr if there is none. */
	Send *expire(u64 now);
	/* Returns the next time at which expire() must be called; ~0 if there is none. */
	u64 earliest() const;

	/* The n-th transmission waits n times the timeout, but at most this many times. */
	static constexpr unsigned back_off_limit = 4;

private:
	/*
	 * There may be thousands of sends of programs that query paths or use umad, and the special
	 * QP's lock is held for each lookup. The secret prevents a program, which chooses its
	 * transaction IDs, from filling one bucket.
	 */
	static constexpr unsigned log_buckets = 6;
	unsigned bucket_of(const ib::MadHeader &header) const
	{
		return static_cast<unsigned>(header.tid.value() * secret_ >> (64 - log_buckets));
	}

	/* Returns the send whose time expires first, or nullptr. */
	Send *first() const;

	const u64 secret_ = kern::random_u64() | 1;
	SendList outstanding_[1u << log_buckets];
	/*
	 * Ordered by deadline. Sends in one list have waited the same multiple of their timeout,
	 * which is equal for most, so a new one usually goes to the end.
	 */
	kern::List<Send, &Send::timer_node> timed_[back_off_limit];
};

} // namespace mad
