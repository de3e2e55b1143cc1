// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Packets that wait for credit at an output port, in order, with a queue for each VL. Used by
 * switches and by software end nodes. Thread-safe; no lock is held while a packet is delivered,
 * because its delivery may return the credit for the next packet of this queue.
 *
 * A thread that sends through the port also sends packets that other threads have queued here. It
 * may be the thread of another guest's card, so it sends at most kTurnBudget packets of others,
 * including those that it sends from the queues of further switches in the same call. The next
 * thread that uses the port sends the rest, or the fabric's timeline does.
 */
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/environment.hpp"
#include "net/fabric/port.hpp"

namespace weft::fabric
{

class EgressQueue
{
public:
	/*
	 * The number of other senders' packets that a thread sends before it continues its own
	 * work.
	 */
	static constexpr unsigned kTurnBudget = 64;

	/* Uses the time of the port's fabric. */
	explicit EgressQueue(Port &port) : port_(port) {}
	EgressQueue(const EgressQueue &) = delete;
	EgressQueue &operator=(const EgressQueue &) = delete;
	/*
	 * Must be called after the node of the port has detached, and not on the timeline's thread.
	 */
	~EgressQueue();

	/*
	 * Sends the packet, or queues it behind others. @limit: maximum number of packets that may
	 * wait on this VL. If it is reached, the packet is dropped: it stays with the caller, who
	 * destroys it.
	 */
	enum class Result { sent, queued, link_down, dropped };
	Result send(Packet &&packet, std::size_t limit);

	/*
	 * Called when a credit of this VL has returned: sends waiting packets, or has another
	 * thread send them.
	 */
	void drain(std::uint8_t vl) noexcept;

	/*
	 * Removes packets that have waited on this VL since before that time; the caller drops
	 * them.
	 */
	std::vector<Packet> expire(std::uint8_t vl, Clock::time_point before);
	/*
	 * Returns when the first packet of this VL began to wait; the clock's maximum if there is
	 * none.
	 */
	Clock::time_point waiting_since(std::uint8_t vl) const;

private:
	struct Waiting {
		Packet packet;
		Clock::time_point since;
	};
	struct VlQueue {
		/* A list, so that a packet without credit can be put back without an allocation. */
		std::list<Waiting> packets;
		bool draining = false;
		bool again = false;
		/* A task of the timeline to drain it is scheduled. */
		bool planned = false;
	};

	Sent send_left(Packet &packet) noexcept;
	void drain_later(std::uint8_t vl) noexcept;

	Port &port_;
	mutable Mutex mutex_;
	/* Created when first needed. */
	std::unique_ptr<VlQueue> queues_[Port::kVls] WEFT_GUARDED_BY(mutex_);
	/* Packets in the queue or being taken from it, which no packet may overtake. */
	std::atomic<unsigned> queued_[Port::kVls]{};
};

} // namespace weft::fabric
