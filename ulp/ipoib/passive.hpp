/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The connections that peers have established to an interface (RFC 4755). All receive through its
 * SRQ.
 *
 * Context: see each function; run() is called by one work item.
 */
#pragma once

#include "active.hpp"

namespace ipoib
{

class PassiveConnection
{
public:
	/* Documentation/ipoib.rst has a diagram. */
	enum class State : u8 {
		answered, /* the connection is being established; the REP was sent or will be */
		up,       /* the peer has it */
		over,     /* the connection must be ended */
		quiet,    /* being ended: no id, and nothing more is received */
	};

	/* A packet has arrived on the connection. Context: NAPI. */
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
	 * It was agreed that the peer may send packets whose checksum is not computed. Context:
	 * any.
	 */
	bool leaves_checksums() const { return leaves_checksums_; }

private:
	friend class PassiveConnections;

	PassiveConnections &all_;
	ib_cm_id *id_;
	const ib_gid peer_;
	bool leaves_checksums_ = false; /* accept()'s, before anything comes by it */
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
	 * Limits of concurrent connections: of all, and of those from one port of a peer. Requests
	 * beyond them are rejected, and their senders continue with datagrams. The port is the one
	 * in the REQ, which a sender with access to QP1 can forge: it can then take all places, and
	 * so limit others to datagrams, but no more.
	 */
	static constexpr u32 connections_max = 256;
	static constexpr u32 of_peer_max = 8;
	/*
	 * A connection without packets for this many rounds, half a minute each, counts as
	 * unused.
	 */
	static constexpr u8 idle_rounds_max = 10;

	explicit PassiveConnections(kern::Work &work) : work_(work) {}
	~PassiveConnections() { kern_assert(connections_.empty()); }

	void set_room(const ConnectionLimit &room) { room_ = room; }
	/* Handles a REQ; returns the result for the handler. Context: handler of the listener. */
	int accept(ib_cm_id &id, const ib_cm_event &event);
	/*
	 * Sets whether packets without a computed checksum are accepted, which they are initially.
	 * If not, no such packet is accepted any more, and connections on which they may arrive are
	 * ended; later connections do not negotiate them. Context: any but hard interrupt.
	 */
	void set_takes_unsummed(bool takes);
	/* Context: any. */
	bool takes_unsummed() const { return __atomic_load_n(&takes_unsummed_, __ATOMIC_RELAXED); }
	/*
	 * A receive of one has failed, which leaves its QP in ERR. Context: any but hard interrupt.
	 */
	void broken(PassiveConnection &connection) { (void)move(connection, State::over); }

	/* Connections that are ended at a time; completions are not polled meanwhile. */
	static constexpr u32 batch_max = 16;
	/*
	 * Begins to end some: they receive nothing from their peers any more. How many they are,
	 * for the caller to end them all by finish_teardown(), nothing being polled meanwhile.
	 * Context: process, one at a time.
	 */
	u32 begin_teardown();
	void finish_teardown();
	void end_all();
	/* Checks the connections on which nothing arrives. Context: any but hard interrupt. */
	void end_idle();

	u64 accepted() const { return __atomic_load_n(&accepted_, __ATOMIC_RELAXED); }
	u64 refused() const { return __atomic_load_n(&refused_, __ATOMIC_RELAXED); }
	/* Context: any but hard interrupt. */
	u32 size();
	/*
	 * Returns true if there are enough connections that dead ones should be removed. Context:
	 * any but hard interrupt.
	 */
	bool is_crowded() { return size() >= connections_max / 2; }

private:
	using State = PassiveConnection::State;

	static constexpr bool leads(State from, State to);
	bool move_locked(PassiveConnection &connection, State to) KERN_REQUIRES(lock_);
	bool move(PassiveConnection &connection, State to);
	bool has_room_locked(const ib_gid &peer) KERN_REQUIRES(lock_);
	kern::Result<> answer(PassiveConnection &connection);
	int refuse(ib_cm_id &id, ib_cm_rej_reason reason);
	PassiveConnection *take_over();
	static int on_event(ib_cm_id *id, const ib_cm_event *event);

	kern::Work &work_;
	ConnectionLimit room_{};
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.passive")};
	kern::List<PassiveConnection, &PassiveConnection::node_>
		connections_ KERN_GUARDED_BY(lock_);
	u32 count_ KERN_GUARDED_BY(lock_) = 0;
	bool takes_unsummed_ = true; /* written under the lock */
	/* Between begin_teardown() and finish_teardown(), the caller's of these. */
	kern::List<PassiveConnection, &PassiveConnection::node_> torn_down_;
	u64 accepted_ = 0, refused_ = 0;
};

} // namespace ipoib
