// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "active.hpp"

#include "connection_data.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>

namespace ipoib
{
namespace
{

/*
 * Time without a new attempt after a refusal, a timeout, or a connection that transferred nothing.
 * Only datagrams are sent during this time.
 */
constexpr u64 reconnect_after_ns = 10'000'000'000;
/* The peer has 1 s to respond, and the REQ is sent up to four times. */
constexpr u8 response_timeout = 18, cm_retries = 3;
/*
 * A lost packet would lose a whole message, which consists of many packets. So lost packets are
 * retransmitted, and a peer without a receive buffer gets some time, but not an unlimited time.
 */
constexpr u8 retries = 7, rnr_retries = 6;

static_assert(sizeof(kern_tx_piece) == sizeof(ib_sge));

/* Passes the packets to the network stack again, which sends them from the start. */
void requeue_all(kern_skb_queue &packets, net_device *dev)
{
	while (sk_buff *skb = kern_skb_dequeue(&packets))
		(void)kern_skb_requeue(skb, dev);
}

} // namespace

kern::Result<> ActiveConnections::allocate(const ConnectionResources &resources)
{
	resources_ = resources;
	requests_ = KERN_TRY(kern::make_array<Request>(kern::Gfp::kernel, requests_max));
	kern::Guard guard(lock_);
	for (Request &request : requests_) {
		request.wr.wr_id = reinterpret_cast<u64>(&request);
		request.wr.sg_list = request.sge;
		request.wr.opcode = IB_WR_SEND;
		request.wr.send_flags = IB_SEND_SIGNALED;
		for (ib_sge &sge : request.sge)
			sge.lkey = resources.pd->local_dma_lkey;
		free_locked(request);
	}
	return {};
}

void ActiveConnections::reclaim()
{
	for (Request &request : requests_) {
		if (!request.connection)
			continue;
		ib_wc lost{};
		lost.wr_id = reinterpret_cast<u64>(&request);
		lost.status = IB_WC_WR_FLUSH_ERR;
		complete(lost, 0);
	}
	{
		kern::Guard guard(lock_);
		free_ = nullptr;
		free_count_ = 0;
	}
	requests_ = {};
}

/*
 * Returns true if a connection may change from state `from` to state `to`. Only this function
 * defines the transitions.
 */
constexpr bool ActiveConnections::may_follow(State from, State to)
{
	switch (from) {
	case State::wanted:
		return to == State::asking || to == State::over;
	case State::asking:
		return to == State::up || to == State::over;
	case State::up:
		return to == State::over;
	case State::over:
		return to == State::ended;
	case State::ended:
		return false;
	}
	return false;
}

/*
 * Changes the state, with all effects of the change. Returns false, without effect, if the
 * transition is not allowed. released: receives the packets that waited for the connection; the
 * caller sends or drops them.
 */
bool ActiveConnections::move_locked(Connection &connection, State to, kern_skb_queue &released,
				    PathState path_state)
{
	const State from = connection.state_;
	if (!may_follow(from, to))
		return false;
	connection.state_ = to;
	switch (to) {
	case State::wanted:
	case State::asking:
		break;
	case State::up:
		made_++;
		release_locked(connection, released);
		break;
	case State::over:
		release_locked(connection, released);
		if (from != State::up)
			failed_++;
		/*
		 * A connection that was established but transferred nothing is retried no sooner
		 * than one that was refused.
		 */
		if (!connection.carried_)
			connection.destination_->connect_at_ = kern::now_ns() + reconnect_after_ns;
		if (path_state == PathState::doubtful)
			destinations_.mark_stale(*connection.destination_);
		connection.destination_->connection_ = nullptr;
		work_.queue();
		break;
	case State::ended:
		connection.node_.unlink();
		count_--;
		break;
	}
	return true;
}

/* Moves the packets that wait for the connection to `released`. */
void ActiveConnections::release_locked(Connection &connection, kern_skb_queue &released)
{
	waiting_ -= connection.waiting_.length;
	std::swap(released, connection.waiting_);
}

/*
 * Changes the state, and sends the packets that waited again. Context: any but hard interrupt, no
 * lock held.
 */
bool ActiveConnections::move(Connection &connection, State to, PathState path_state)
{
	kern_skb_queue released{};
	bool moved;
	{
		kern::Guard guard(lock_);
		moved = move_locked(connection, to, released, path_state);
	}
	requeue_all(released, resources_.dev);
	return moved;
}

/* Returns true if the limits permit another connection to the peer. */
bool ActiveConnections::is_within_limits_locked(const ib::Gid &peer)
{
	u32 of_peer = 0;
	for (const Connection &connection : connections_)
		of_peer += connection.destination_->address().gid == peer;
	return count_ < connections_max && of_peer < of_peer_max;
}

/*
 * Creates the connection to a destination. Returns nullptr if the limits, the delay after a failure
 * or the lack of memory or of a path prevents it.
 */
Connection *ActiveConnections::create_locked(Destination &destination)
{
	const u64 now = kern::now_ns();
	if (destination.is_removed() || now < destination.connect_at_)
		return nullptr;
	if (!is_within_limits_locked(destination.address().gid)) {
		/* Do not count the connections again for each packet. */
		destination.connect_at_ = now + reconnect_after_ns;
		return nullptr;
	}
	auto made = kern::make<Connection>(kern::Gfp::atomic | kern::Gfp::no_warn, *this,
					   kern::Ref<Destination>::share(destination));
	if (!made.ok() || !destinations_.path_of(destination, made.value()->path_))
		return nullptr;
	Connection *connection = made.take().release();
	connections_.push_back(*connection);
	count_++;
	destination.connection_ = connection;
	work_.queue();
	return connection;
}

ActiveConnections::Outcome ActiveConnections::send(Destination &destination, sk_buff *skb,
						   u32 datagram_bytes)
{
	kern_tx_packet packet;
	kern_skb_tx_packet(skb, &packet);
	const u32 length = packet.length - address_bytes;
	kern::Guard guard(lock_);
	Connection *connection = destination.connection_ ?: create_locked(destination);
	if (!connection)
		return {};
	if (connection->state_ != State::up) {
		if (length <= datagram_bytes)
			return {};
		if (connection->waiting_.length < waiting_max && waiting_ < waiting_of_all_max) {
			kern_skb_enqueue(&connection->waiting_, skb);
			waiting_++;
		} else {
			drop_locked(skb);
		}
		return {.taken = true};
	}
	/* Such a packet may also be too long for a datagram, which the caller checks. */
	if (length > connection->limit_)
		return {.taken = false, .limit = connection->limit_};
	send_locked(*connection, skb, packet);
	return {.taken = true};
}

void ActiveConnections::drop_locked(sk_buff *skb)
{
	dropped_++;
	kern_skb_drop(skb);
}

/*
 * Posts a packet to an established connection, or drops it. packet: describes the skb with the
 * hardware address in front.
 */
void ActiveConnections::send_locked(Connection &connection, sk_buff *skb,
				    const kern_tx_packet &packet)
{
	Request *const request = free_;
	if (connection.outstanding_ >= requests_of_one(free_count_)) {
		drop_locked(skb);
		return;
	}
	if (!kern_skb_pull(skb, address_bytes, sizeof(Header))) [[unlikely]] {
		drop_locked(skb);
		return;
	}
	/* A GSO packet was created when the interface was in datagram mode. TCP retransmits it. */
	if (packet.gso_size || !settle_checksum_locked(connection, skb, packet)) [[unlikely]] {
		drop_locked(skb);
		return;
	}
	if (packet.fragments + (packet.linear > address_bytes) > send_sge_ &&
	    kern_skb_linearize(skb)) [[unlikely]] {
		drop_locked(skb);
		return;
	}
	const int mapped = kern_skb_map(resources_.device->dma_device, skb, 0,
					reinterpret_cast<kern_tx_piece *>(request->sge));
	if (mapped < 0) [[unlikely]] {
		drop_locked(skb);
		return;
	}
	free_ = request->next_free;
	free_count_--;
	request->skb = skb;
	request->connection = &connection;
	request->wr.num_sge = mapped;
	connection.outstanding_++;
	counters_.packets++;
	counters_.bytes += packet.length - address_bytes;
	const ib_send_wr *bad;
	if (ib_post_send(connection.qp_, &request->wr, &bad)) [[unlikely]] {
		/* The request was not accepted, so it never completes. */
		kern_skb_unmap(resources_.device->dma_device, skb, 0,
			       reinterpret_cast<kern_tx_piece *>(request->sge));
		drop_locked(skb);
		connection.outstanding_--;
		free_locked(*request);
		kern_skb_queue none{};
		(void)move_locked(connection, State::over, none);
	}
}

/*
 * Omits the checksum if the peer has agreed and can locate it; otherwise computes it. Only this
 * function may set the flag in a packet, so it clears a flag that another sender has set. skb:
 * begins with the encapsulation header; packet: describes it with the hardware address in front.
 * Returns false if memory allocation fails.
 */
bool ActiveConnections::settle_checksum_locked(const Connection &connection, sk_buff *skb,
					       const kern_tx_packet &packet)
{
	const auto *header = static_cast<const Header *>(kern_skb_push(skb, 0));
	bool leave = false;
	if (packet.checksum) {
		unsigned int start, offset;
		kern_skb_checksum_place(skb, &start, &offset);
		const ChecksumPlace place = checksum_place(header->type.value(),
							   reinterpret_cast<const u8 *>(header + 1),
							   packet.linear - hard_header_bytes);
		leave = connection.leaves_checksums_ && place &&
			start == place.start + sizeof(Header) && offset == place.offset;
		if (!leave && kern_skb_fill_checksum(skb))
			return false;
	}
	const u16 flag = leave ? Header::unsummed : u16{0};
	unsummed_ += leave;
	if (static_cast<const Header *>(kern_skb_push(skb, 0))->reserved.value() == flag)
		return true;
	if (kern_skb_cow_head(skb, 0))
		return false;
	static_cast<Header *>(kern_skb_push(skb, 0))->reserved = flag;
	return true;
}

void ActiveConnections::free_locked(Request &request)
{
	request.skb = nullptr;
	request.connection = nullptr;
	request.next_free = free_;
	free_ = &request;
	free_count_++;
}

/* A failed request means that the connection is broken. The next packet creates another one. */
void ActiveConnections::complete(const ib_wc &wc, int budget)
{
	Request &request = *reinterpret_cast<Request *>(wc.wr_id);
	kern_skb_unmap(resources_.device->dma_device, request.skb, 0,
		       reinterpret_cast<kern_tx_piece *>(request.sge));
	kern_skb_consume(request.skb, budget);
	kern::Owned<Connection> gone;
	kern::Guard guard(lock_);
	Connection &connection = *request.connection;
	free_locked(request);
	counters_.completions++;
	connection.outstanding_--;
	if (wc.status == IB_WC_SUCCESS) [[likely]] {
		connection.carried_ = true;
	} else {
		counters_.errors++;
		kern_skb_queue none{}; /* no packets wait for a connection in state up */
		(void)move_locked(connection, State::over, none, PathState::doubtful);
	}
	gone = owned_if_done_locked(connection);
}

/* Returns a connection that run() must establish or end, or nullptr. */
Connection *ActiveConnections::next_pending()
{
	kern::Guard guard(lock_);
	for (Connection &connection : connections_)
		if (connection.state_ == State::wanted || connection.state_ == State::over)
			return &connection;
	return nullptr;
}

void ActiveConnections::run()
{
	while (Connection *connection = next_pending()) {
		if (move(*connection, State::asking))
			request(*connection);
		else
			end(*connection);
	}
}

/* Sends the REQ of a connection. If that fails, the connection is over. */
void ActiveConnections::request(Connection &connection)
{
	if (auto sent = send_req(connection); !sent.ok())
		(void)move(connection, State::over);
}

kern::Result<> ActiveConnections::send_req(Connection &connection)
{
	ib_qp_init_attr init{};
	/*
	 * Nothing is received on this QP; the peer sends on a connection that it establishes
	 * itself.
	 */
	init.send_cq = init.recv_cq = resources_.cq;
	init.cap.max_send_wr = requests_of_one_max;
	const auto sge = static_cast<u32>(resources_.device->attrs.max_send_sge);
	init.cap.max_send_sge = sge < max_pieces ? sge : max_pieces;
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = IB_QPT_RC;
	connection.qp_ = KERN_TRY(own(ib_create_qp(resources_.pd, &init)));
	send_sge_ = init.cap.max_send_sge < max_pieces ? init.cap.max_send_sge : max_pieces;
	KERN_TRY(to_init(*connection.qp_, resources_));

	connection.id_ = KERN_TRY(own(ib_create_cm_id(resources_.device, on_event, &connection)));
	const ConnectionData data = connection_data(resources_, true);
	ib_cm_req_param req{};
	req.primary_path = &connection.path_;
	req.service_id = connection_service(connection.destination_->address().qpn());
	req.qp_num = connection.qp_->qp_num;
	req.qp_type = IB_QPT_RC;
	req.starting_psn = connection.qp_->qp_num & psn_mask;
	req.private_data = &data;
	req.private_data_len = sizeof(data);
	req.remote_cm_response_timeout = response_timeout;
	req.local_cm_response_timeout = response_timeout;
	req.retry_count = retries;
	req.rnr_retry_count = rnr_retries;
	req.max_cm_retries = cm_retries;
	return kern::check(ib_send_cm_req(connection.id_, &req));
}

/* The CM ID is destroyed first, because its handler uses the QP. */
void ActiveConnections::end(Connection &connection)
{
	if (connection.id_)
		ib_destroy_cm_id(connection.id_);
	/* Outstanding requests complete before this returns. */
	if (connection.qp_)
		KERN_WARN_ON(ib_destroy_qp(connection.qp_));
	kern::Owned<Connection> gone;
	kern_skb_queue none{};
	kern::Guard guard(lock_);
	(void)move_locked(connection, State::ended, none);
	gone = owned_if_done_locked(connection);
}

/*
 * Returns the connection if it has ended and its last request has completed, so that the caller
 * frees it after unlocking; otherwise an empty owner.
 */
kern::Owned<Connection> ActiveConnections::owned_if_done_locked(Connection &connection)
{
	return kern::Owned<Connection>::adopt(
		connection.state_ == State::ended && !connection.outstanding_ ? &connection
									      : nullptr);
}

/* Handles the REP of the peer. Context: handler of the CM ID. */
kern::Result<> ActiveConnections::establish(Connection &connection, const ib_cm_event &event)
{
	const PeerData peer = KERN_TRY(peer_data(event));
	KERN_TRY(to_rtr(*connection.qp_, *connection.id_));
	KERN_TRY(to_rts(*connection.qp_, *connection.id_));
	KERN_TRY_ERRNO(ib_send_cm_rtu(connection.id_, nullptr, 0));
	connection.limit_ =
		peer.receive_bytes < connected_bytes ? peer.receive_bytes : connected_bytes;
	connection.leaves_checksums_ = peer.leaves_checksums;
	(void)move(connection, State::up);
	return {};
}

/* Never destroys the CM ID; run() does that when the connection is over. */
int ActiveConnections::on_event(ib_cm_id *id, const ib_cm_event *event)
{
	auto &connection = *static_cast<Connection *>(id->context);
	switch (event->event) {
	case IB_CM_REQ_ERROR:
		(void)connection.all_.move(connection, State::over, PathState::doubtful);
		break;
	case IB_CM_REP_RECEIVED:
		if (connection.all_.establish(connection, *event).ok())
			break;
		[[fallthrough]];
	case IB_CM_REJ_RECEIVED:
	/* A weft interface never needs more time for its response, and packets wait until then. */
	case IB_CM_MRA_RECEIVED:
	case IB_CM_DREQ_RECEIVED:
	case IB_CM_DREQ_ERROR:
	case IB_CM_DREP_RECEIVED:
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_DEVICE_REMOVAL:
		(void)connection.all_.move(connection, State::over);
		break;
	default:
		break;
	}
	return 0;
}

void ActiveConnections::end_all()
{
	kern::Guard guard(lock_);
	for (Connection &connection : connections_)
		give_up_locked(connection);
}

void ActiveConnections::end_unused()
{
	kern::Guard guard(lock_);
	for (Connection &connection : connections_)
		if (connection.destination_->is_removed())
			give_up_locked(connection);
}

/* Ends the connection, and drops the packets that wait for it. */
void ActiveConnections::give_up_locked(Connection &connection)
{
	kern_skb_queue waited{};
	(void)move_locked(connection, State::over, waited);
	while (sk_buff *skb = kern_skb_dequeue(&waited))
		drop_locked(skb);
}

} // namespace ipoib
