// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Queues packets that wait for credit at an output port, in order, with a queue for each VL.
 * Switches and software end nodes use it. All functions may be called on any thread. No lock is
 * held while a packet is delivered, because its delivery may return the credit for the next packet
 * of this queue.
 *
 * A thread that sends through the port also sends packets that other threads have queued here. The
 * thread may belong to another guest's card, so it sends at most kTurnBudget packets of other
 * senders, including those that it sends from the queues of other switches in the same call. The
 * remaining packets are sent by the next thread that uses the port, or by the fabric's thread for
 * delayed work (timeline.hpp).
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
	 * Must be called after the node of the port has detached, and not in a task of the
	 * timeline.
	 */
	~EgressQueue();

	/*
	 * Sends the packet, or queues it behind others. @limit is the maximum number of packets
	 * that may wait on this VL. If it is reached, the result is `dropped`, and the caller keeps
	 * and destroys the packet.
	 */
	enum class Result { sent, queued, link_down, dropped };
	Result send(Packet &&packet, std::size_t limit);

	/*
	 * Called when a credit of this VL has returned: sends waiting packets, or lets another
	 * thread send them.
	 */
	void drain(std::uint8_t vl) noexcept;

	/*
	 * Removes the packets that have waited on this VL since before @before, and returns them.
	 * The caller drops them.
	 */
	std::vector<Packet> expire(std::uint8_t vl, Clock::time_point before);
	/*
	 * Returns when the first packet of this VL began to wait, or the clock's maximum if there
	 * is none.
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
		/* True if a task of the timeline that drains the queue is scheduled. */
		bool planned = false;
	};

	Sent send_left(Packet &packet) noexcept;
	void drain_later(std::uint8_t vl) noexcept;

	Port &port_;
	mutable Mutex mutex_;
	/* A queue is created when it is first needed. */
	std::unique_ptr<VlQueue> queues_[Port::kVls] WEFT_GUARDED_BY(mutex_);
	/*
	 * Number of packets in the queue or being taken from it, which no other packet may
	 * overtake.
	 */
	std::atomic<unsigned> queued_[Port::kVls]{};
};

} // namespace weft::fabric
