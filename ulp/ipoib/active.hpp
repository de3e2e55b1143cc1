/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the connections on which an interface sends (RFC 4755): at most one to each hardware
 * address, established when there is a packet to send. While a peer has no connection, packets that
 * fit into a datagram are sent as datagrams.
 *
 * Locks, outermost first: the lock of this object, and the DestinationTable's lock. Each function's
 * comment states the context in which it may be called. Only the work item of Connected calls
 * run().
 */
#pragma once

#include "counters.hpp"
#include "destination.hpp"

#include <kern/list.hpp>
#include <kern/work.hpp>
#include <rdma/ib_cm.h>

namespace ipoib
{

/* What the connections of an interface use. The interface and its Connected own all of it. */
struct ConnectionResources {
	net_device *dev;
	ib_device *device;
	u32 port_num;
	u16 pkey_index;
	u32 qpn; /* QP number in the hardware address */
	ib_pd *pd;
	ib_cq *cq;
	ib_srq *srq;
};

class Connection
{
public:
	/* Documentation/ipoib.rst has a diagram of the transitions. */
	enum class State : u8 {
		wanted, /* no REQ has been sent */
		asking, /* the REQ was sent */
		up,     /* packets are sent */
		over,   /* no packets are sent; run() must end the connection */
		ended,  /* the QP and the CM ID are destroyed; freed with the last request */
	};

	Connection(class ActiveConnections &all, kern::Ref<Destination> to)
	    : all_(all), destination_(std::move(to))
	{
	}

private:
	friend class ActiveConnections;

	ActiveConnections &all_;
	const kern::Ref<Destination> destination_;
	sa_path_rec path_{};
	/*
	 * Used only by run(), except that the CM ID's handler uses the QP, so the ID is destroyed
	 * first.
	 */
	ib_cm_id *id_ = nullptr;
	ib_qp *qp_ = nullptr;

	/* Protected by the lock. */
	kern::ListNode node_;
	State state_ = State::wanted;
	bool carried_ = false; /* a packet was delivered on it */
	kern_skb_queue waiting_{};
	u32 outstanding_ = 0;
	/* maximum size of a message in bytes; valid in state up */
	u32 limit_ = 0;
	/* valid in state up: the peer accepts packets without checksums */
	bool leaves_checksums_ = false;
};

class ActiveConnections
{
public:
	/*
	 * The maximum numbers of concurrent connections, in total and to one GID, which may have
	 * many QP numbers. weft's peers accept no more from one port. Peers beyond the limits get
	 * datagrams.
	 */
	static constexpr u32 connections_max = 1024;
	static constexpr u32 of_peer_max = 8;
	/*
	 * The maximum numbers of packets in flight, on all connections and on one. One connection
	 * gets at most a fourth of the free requests, so a peer that does not receive leaves most
	 * of them to others; eight such connections to one peer leave a sixth. Packets beyond the
	 * limits are dropped.
	 */
	static constexpr u32 requests_max = 1024;
	static constexpr u32 requests_share = 4;
	static constexpr u32 requests_of_one_max = requests_max / (requests_share + 1) + 1;
	/* Returns the number of requests that one connection may have if `left` are left. */
	static constexpr u32 requests_of_one(u32 left)
	{
		return (left + requests_share - 1) / requests_share;
	}
	/*
	 * The maximum numbers of packets that wait for one connection, and for all of them: at most
	 * 16 MiB. Only packets that are too long for a datagram wait.
	 */
	static constexpr u32 waiting_max = 64;
	static constexpr u32 waiting_of_all_max = 256;

	ActiveConnections(DestinationTable &destinations, kern::Work &work)
	    : destinations_(destinations), work_(work)
	{
	}
	~ActiveConnections() { kern_assert(connections_.empty() && requests_.empty()); }

	/* Context: process. Errors: ENOMEM. */
	kern::Result<> allocate(const ConnectionResources &resources);
	/*
	 * Frees requests that never completed. All connections must be closed, so that no
	 * completion follows. Context: process.
	 */
	void reclaim();

	/* Result of sending a packet. */
	struct Outcome {
		/* the packet was sent or dropped; otherwise the caller sends it as a datagram */
		bool taken;
		u32 limit; /* maximum message size of the connection, if the packet was too large */

		/*
		 * Returns the size of the largest IP packet that can be sent to the peer, on a
		 * connection or as a datagram.
		 */
		u32 largest(u32 datagram) const
		{
			const u32 connected = limit ? limit - static_cast<u32>(sizeof(Header)) : 0;
			return connected > datagram ? connected : datagram;
		}
	};
	/**
	 * send() - send a packet on the connection to its destination; creates the connection if
	 * there is none
	 * there is none
	 * @skb: begins with the hardware address
	 * @datagram_bytes: size of the packet as a datagram, with the encapsulation header
	 *
	 * Context: start_xmit.
	 */
	Outcome send(Destination &destination, sk_buff *skb, u32 datagram_bytes);
	/* Handles the completion of a request of send(). Context: NAPI. */
	void complete(const ib_wc &wc, int budget);

	/*
	 * Starts requested connections, and destroys those that have ended. Context:
	 * process, one call at a time.
	 */
	void run();
	/*
	 * Ends all connections; run() must be called afterwards. Context: any but hard interrupt.
	 */
	void end_all();
	/*
	 * Ends connections whose destination is not used any more. Context: any but hard interrupt.
	 */
	void end_unused();

	const TransmitCounters &counters() const { return counters_; }
	u64 made() const { return __atomic_load_n(&made_, __ATOMIC_RELAXED); }
	u64 failed() const { return __atomic_load_n(&failed_, __ATOMIC_RELAXED); }
	u64 dropped() const { return __atomic_load_n(&dropped_, __ATOMIC_RELAXED); }
	/*
	 * Number of packets that were sent without a checksum, which the peer accepts. Context:
	 * any.
	 */
	u64 unsummed() const { return __atomic_load_n(&unsummed_, __ATOMIC_RELAXED); }

private:
	static constexpr unsigned max_pieces = 18;
	struct Request {
		ib_send_wr wr;
		sk_buff *skb;
		Connection *connection; /* nullptr if the request is free */
		Request *next_free;
		ib_sge sge[max_pieces];
	};
	using State = Connection::State;
	enum class PathState : u8 {
		good,
		doubtful
	}; /* doubtful: a message was lost, so the path must be queried again */

	static constexpr bool may_follow(State from, State to);
	bool move_locked(Connection &connection, State to, kern_skb_queue &released,
			 PathState path_state = PathState::good) KERN_REQUIRES(lock_);
	bool move(Connection &connection, State to, PathState path_state = PathState::good);
	void release_locked(Connection &connection, kern_skb_queue &released) KERN_REQUIRES(lock_);
	bool is_within_limits_locked(const ib::Gid &peer) KERN_REQUIRES(lock_);
	Connection *create_locked(Destination &destination) KERN_REQUIRES(lock_);
	void send_locked(Connection &connection, sk_buff *skb, const kern_tx_packet &packet)
		KERN_REQUIRES(lock_);
	bool settle_checksum_locked(const Connection &connection, sk_buff *skb,
				    const kern_tx_packet &packet) KERN_REQUIRES(lock_);
	kern::Owned<Connection> owned_if_done_locked(Connection &connection) KERN_REQUIRES(lock_);
	void drop_locked(sk_buff *skb) KERN_REQUIRES(lock_);
	void give_up_locked(Connection &connection) KERN_REQUIRES(lock_);
	void free_locked(Request &request) KERN_REQUIRES(lock_);
	Connection *next_pending();
	void request(Connection &connection);
	kern::Result<> send_req(Connection &connection);
	void end(Connection &connection);
	kern::Result<> establish(Connection &connection, const ib_cm_event &event);
	static int on_event(ib_cm_id *id, const ib_cm_event *event);

	DestinationTable &destinations_;
	kern::Work &work_;
	ConnectionResources resources_{};
	u32 send_sge_ = 0;
	kern::OwnedArray<Request> requests_;

	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.connections")};
	kern::List<Connection, &Connection::node_> connections_ KERN_GUARDED_BY(lock_);
	u32 count_ KERN_GUARDED_BY(lock_) = 0;
	Request *free_ KERN_GUARDED_BY(lock_) = nullptr;
	u32 free_count_ KERN_GUARDED_BY(lock_) = 0;
	/* number of packets that wait for a connection */
	u32 waiting_ KERN_GUARDED_BY(lock_) = 0;
	TransmitCounters counters_{};
	u64 made_ = 0, failed_ = 0, dropped_ = 0, unsummed_ = 0;
};

} // namespace ipoib
