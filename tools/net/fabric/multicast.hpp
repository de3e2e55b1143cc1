// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Limits the delay that multicast causes for nodes other than its sender. One packet may become
 * thousands of copies. If the sender's thread made all of them, the other cards of the thread would
 * wait.
 *
 * A packet gets a ticket at the switch port where it enters the fabric. The ticket allows a few
 * copies on the sender's thread. Switches make the other copies on the fabric's thread for delayed
 * work (timeline.hpp), a few at a time for each sender in turn (CopyQueue). The number of a
 * sender's tickets is limited. Packets beyond that wait at its port, where they hold its credits,
 * which throttles the sender. A ticket is returned when the switches have made the last copy, even
 * if slow receivers have not yet received theirs.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/mutex.hpp"
#include "net/fabric/packet.hpp"

namespace weft::fabric
{

class Timeline;

/* A switch port where multicast packets enter the fabric. Thread-safe; created by make_shared(). */
class MulticastSender : public std::enable_shared_from_this<MulticastSender>
{
public:
	/* Limit of packets that have not been copied completely. */
	static constexpr unsigned kTicketsMax = 64;

	/*
	 * @forward takes a packet with its ticket. It is called on the thread of enter() or of the
	 * timeline.
	 */
	MulticastSender(Timeline &timeline, std::function<void(Packet &&packet)> forward)
	    : timeline_(timeline), forward_(std::move(forward))
	{
	}

	/* Forwards the packet, now or when a ticket is available. */
	void enter(Packet &&packet);
	/*
	 * Drops waiting packets. @forward is not called any more after the return. Must not be
	 * called in a task of the timeline.
	 */
	void close();

private:
	friend struct MulticastTicket;

	/* Called when a ticket was returned. */
	void returned() noexcept;
	void forward_waiting();

	Timeline &timeline_;
	const std::function<void(Packet &&packet)> forward_;
	Mutex mutex_;
	unsigned tickets_ WEFT_GUARDED_BY(mutex_) = 0;
	std::deque<Packet> waiting_ WEFT_GUARDED_BY(mutex_);
	/* True if a task of the timeline that forwards waiting packets is scheduled. */
	bool planned_ WEFT_GUARDED_BY(mutex_) = false;
	bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

/* Shared by a packet and its copies as long as they are in switches or between them. */
struct MulticastTicket {
	/* Limit of the copies of one packet. Beyond it, a routing loop is assumed. */
	static constexpr std::int64_t kCopiesMax = 65536;
	/* Limit of the copies that are made on the sender's thread. */
	static constexpr int kAtOnceMax = 16;

	MulticastTicket(std::shared_ptr<MulticastSender> from, int copies_at_once)
	    : sender(std::move(from)), at_once(copies_at_once)
	{
	}
	MulticastTicket(const MulticastTicket &) = delete;
	MulticastTicket &operator=(const MulticastTicket &) = delete;
	~MulticastTicket() { sender->returned(); }

	bool take_at_once()
	{
		return at_once.load(std::memory_order_relaxed) > 0 &&
		       at_once.fetch_sub(1, std::memory_order_relaxed) > 0;
	}

	const std::shared_ptr<MulticastSender> sender;
	std::atomic<std::int64_t> copies_left{kCopiesMax};
	/* The number of copies that may still be made on the sender's thread. */
	std::atomic<int> at_once;
};

/* The multicast packets of which a switch still has to make copies. Thread-safe. */
class CopyQueue
{
public:
	/*
	 * Limits of the copies of one sender before the next sender is served, and of all copies in
	 * one task.
	 */
	static constexpr unsigned kTurnCopies = 8;
	static constexpr unsigned kTaskCopies = 32;

	struct Entry {
		Packet packet;
		const void *sender;
		/*
		 * The port by which the packet arrived, and the next port to check for membership.
		 */
		unsigned in;
		unsigned next = 1;
	};
	/*
	 * @copy makes up to @left copies of an entry's packet and subtracts their number from
	 * @left. It returns true if the last copy was made. Called in tasks of the timeline.
	 */
	CopyQueue(Timeline &timeline, std::function<bool(Entry &entry, unsigned &left)> copy)
	    : timeline_(timeline), copy_(std::move(copy))
	{
	}
	/*
	 * Must be called after the owner has detached from its ports, and not in a task of the
	 * timeline.
	 */
	~CopyQueue();

	void push(Entry &&entry);
	/*
	 * Returns true if packets of @sender wait, so that its next packet must be queued behind
	 * them.
	 */
	bool has(const void *sender);

private:
	struct Flow {
		std::deque<Entry> entries;
		/*
		 * True while the timeline copies the sender's first packet, which is then not in
		 * the queue.
		 */
		bool busy = false;
	};

	void plan_locked() noexcept WEFT_REQUIRES(mutex_);
	void run();

	Timeline &timeline_;
	const std::function<bool(Entry &entry, unsigned &left)> copy_;
	Mutex mutex_;
	std::unordered_map<const void *, Flow> flows_ WEFT_GUARDED_BY(mutex_);
	/* Senders with packets, in the order in which they are served. */
	std::deque<const void *> turns_ WEFT_GUARDED_BY(mutex_);
	bool planned_ WEFT_GUARDED_BY(mutex_) = false;
};

} // namespace weft::fabric
