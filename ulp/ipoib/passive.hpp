/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the connections that peers have established to an interface (RFC 4755). All of them
 * receive through the interface's SRQ.
 *
 * Each function's comment states the context in which it may be called.
 */
#pragma once

#include "active.hpp"

namespace ipoib
{

class PassiveConnection
{
public:
	/* Documentation/ipoib.rst has a diagram of the transitions. */
	enum class State : u8 {
		answered, /* the connection is being established; the REP was sent or will be */
		up,       /* the peer has received the REP, and may send */
		over,     /* the connection must be ended */
		/* being ended: the CM ID is destroyed, the QP is in ERR and receives nothing */
		quiet,
	};

	/* Called when a packet has arrived on the connection. Context: NAPI. */
	void touch()
	{
		if (!__atomic_load_n(&touched_, __ATOMIC_RELAXED))
			__atomic_store_n(&touched_, true, __ATOMIC_RELAXED);
	}

	PassiveConnection(class PassiveConnections &all, ib_cm_id &id, const ib_gid &peer)
	    : all_(all), id_(&id), peer_(peer)
	{
	}
	/*
	 * Returns true if it was agreed that the peer may send packets without computed checksums.
	 * Context: any.
	 */
	bool leaves_checksums() const { return leaves_checksums_; }

private:
	friend class PassiveConnections;

	PassiveConnections &all_;
	ib_cm_id *id_;
	const ib_gid peer_;
	bool leaves_checksums_ = false; /* set by accept(), before any packet can arrive */
	ib_qp *qp_ = nullptr;
	bool touched_ = true;

	/* Protected by the lock. */
	kern::ListNode node_;
	State state_ = State::answered;
	u8 idle_rounds_ = 0;
};

class PassiveConnections
{
public:
	/*
	 * The maximum numbers of concurrent connections, in total and from one port of a peer.
	 * Requests beyond them are rejected, and their senders continue with datagrams. The port is
	 * the one in the REQ, which a sender with access to QP1 can forge. It can then occupy all
	 * connections and so limit other peers to datagrams, but has no other effect.
	 */
	static constexpr u32 connections_max = 256;
	static constexpr u32 of_peer_max = 8;
	/*
	 * A connection counts as unused when it had no packets for this many rounds of half a
	 * minute.
	 */
	static constexpr u8 idle_rounds_max = 10;

	explicit PassiveConnections(kern::Work &work) : work_(work) {}
	~PassiveConnections() { kern_assert(connections_.empty()); }

	/* Sets the resources; must be called before accept() can be. */
	void set_resources(const ConnectionResources &resources) { resources_ = resources; }
	/* Handles a REQ; returns the result for the CM. Context: handler of the listener. */
	int accept(ib_cm_id &id, const ib_cm_event &event);
	/*
	 * Sets whether packets without a computed checksum are accepted, which they are initially.
	 * If not, such packets are dropped from now on, the connections on which they may arrive
	 * are ended, and new connections do not negotiate them. Context: any but hard interrupt.
	 */
	void set_takes_unsummed(bool takes);
	/* Context: any. */
	bool takes_unsummed() const { return __atomic_load_n(&takes_unsummed_, __ATOMIC_RELAXED); }
	/*
	 * Called when a receive has failed, which leaves the connection's QP in ERR. Context: any
	 * but hard interrupt.
	 */
	void broken(PassiveConnection &connection) { (void)move(connection, State::over); }

	/*
	 * Maximum number of connections that are ended at a time, because completions are not
	 * polled while finish_teardown() runs.
	 */
	static constexpr u32 batch_max = 16;
	/*
	 * Ends the CM IDs of connections that are over, and moves their QPs to ERR, so that they
	 * receive nothing any more. Returns the number of connections; unless it is 0, the caller
	 * must stop NAPI, call finish_teardown() and start NAPI. Context: process, one call at a
	 * time.
	 */
	u32 begin_teardown();
	/*
	 * Destroys the QPs of the connections that begin_teardown() has ended, and frees the
	 * connections. Context: process; no completions may be polled.
	 */
	void finish_teardown();
	/* Marks all connections as over. Context: any but hard interrupt. */
	void end_all();
	/*
	 * Ends the connections on which nothing has arrived for idle_rounds_max calls. Context: any
	 * but hard interrupt.
	 */
	void end_idle();

	u64 accepted() const { return __atomic_load_n(&accepted_, __ATOMIC_RELAXED); }
	u64 rejected() const { return __atomic_load_n(&rejected_, __ATOMIC_RELAXED); }
	/* Returns the number of connections. Context: any but hard interrupt. */
	u32 size();
	/*
	 * Returns true if so many connections exist that those that are over must be destroyed
	 * without delay. Context: any but hard interrupt.
	 */
	bool is_crowded() { return size() >= connections_max / 2; }

private:
	using State = PassiveConnection::State;

	static constexpr bool may_follow(State from, State to);
	bool move_locked(PassiveConnection &connection, State to) KERN_REQUIRES(lock_);
	bool move(PassiveConnection &connection, State to);
	bool is_within_limits_locked(const ib_gid &peer) KERN_REQUIRES(lock_);
	kern::Result<> answer(PassiveConnection &connection);
	int reject(ib_cm_id &id, ib_cm_rej_reason reason);
	PassiveConnection *next_to_end();
	static int on_event(ib_cm_id *id, const ib_cm_event *event);

	kern::Work &work_;
	ConnectionResources resources_{};
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.passive")};
	kern::List<PassiveConnection, &PassiveConnection::node_>
		connections_ KERN_GUARDED_BY(lock_);
	u32 count_ KERN_GUARDED_BY(lock_) = 0;
	bool takes_unsummed_ = true; /* written with the lock held */
	/* From begin_teardown() to finish_teardown(); used only by their caller. */
	kern::List<PassiveConnection, &PassiveConnection::node_> torn_down_;
	u64 accepted_ = 0, rejected_ = 0;
};

} // namespace ipoib
