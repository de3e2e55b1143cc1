// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Handles received messages: looks up the ID of each message, makes the state transition, and
 * applies the contents of the message.
 */
#include "check.hpp"
#include "device.hpp"

#include <rdma/ib_cache.h>

namespace cm
{
namespace
{

/* Returns the event for a message. */
Event to_event(const ib::Mad &mad)
{
	switch (static_cast<ib::CmAttribute>(mad.header.attr_id.value())) {
	case ib::CmAttribute::req:
		return Event::got_req;
	case ib::CmAttribute::mra:
		switch (static_cast<ib::CmSubject>(ib::cm_message<ib::CmMra>(mad).subject())) {
		case ib::CmSubject::req:
			return Event::got_mra_req;
		case ib::CmSubject::rep:
			return Event::got_mra_rep;
		default:
			return Event::got_mra_lap;
		}
	case ib::CmAttribute::rej:
		return ib::cm_message<ib::CmRej>(mad).reason == IB_CM_REJ_STALE_CONN
			       ? Event::got_rej_stale
			       : Event::got_rej;
	case ib::CmAttribute::rep:
		return Event::got_rep;
	case ib::CmAttribute::rtu:
		return Event::got_rtu;
	case ib::CmAttribute::dreq:
		return Event::got_dreq;
	case ib::CmAttribute::drep:
		return Event::got_drep;
	case ib::CmAttribute::lap:
		return Event::got_lap;
	case ib::CmAttribute::apr:
		return Event::got_apr;
	case ib::CmAttribute::sidr_req:
		return Event::got_sidr_req;
	default:
		return Event::got_sidr_rep;
	}
}

ib_cm_event_type to_type(Event event)
{
	switch (event) {
	case Event::got_mra_req:
	case Event::got_mra_rep:
	case Event::got_mra_lap:
		return IB_CM_MRA_RECEIVED;
	case Event::got_rej:
	case Event::got_rej_stale:
		return IB_CM_REJ_RECEIVED;
	case Event::got_rep:
		return IB_CM_REP_RECEIVED;
	case Event::got_rtu:
		return IB_CM_RTU_RECEIVED;
	case Event::got_dreq:
		return IB_CM_DREQ_RECEIVED;
	case Event::got_drep:
		return IB_CM_DREP_RECEIVED;
	case Event::got_lap:
		return IB_CM_LAP_RECEIVED;
	case Event::got_apr:
		return IB_CM_APR_RECEIVED;
	default:
		return IB_CM_SIDR_REP_RECEIVED;
	}
}

} // namespace

void Device::receive(Port &port, Received received)
{
	kern::Guard guard(lock_);
	if (gone_)
		return;
	const Fault fault = check(received.mad());
	if (fault == Fault::not_ours || fault == Fault::malformed) {
		port.counters.malformed++;
		return;
	}
	port.counters.received[counter_of(received.mad())]++;
	if (fault == Fault::transport_type) {
		reject(port, received, IB_CM_REJ_INVALID_TRANSPORT_TYPE);
	} else if (fault == Fault::path_mtu) {
		const auto largest = static_cast<u8>(IB_MTU_4096);
		reject(port, received, IB_CM_REJ_INVALID_MTU, kern::bytes_of(largest));
	} else {
		take(port, std::move(received));
	}
}

/* Returns the connection to which both communication IDs belong, or nullptr. */
Id *Device::find(const ib::CmPair &pair)
{
	Id *id = find(pair.remote_id);
	return id && id->remote_id == pair.local_id ? id : nullptr;
}

/*
 * Returns the ID to which a REJ belongs, or nullptr. A REJ because of a timeout contains the
 * sender's GUID, because its receiver's ID may be unknown to the sender (IBA 12.6.7.2). A REJ of a
 * REQ may contain no ID of its sender.
 */
Id *Device::find_rejected(const ib::CmRej &rej)
{
	if (rej.reason == IB_CM_REJ_TIMEOUT && rej.info_length() >= sizeof(ib::be64)) {
		ib::be64 guid;
		__builtin_memcpy(&guid, rej.info, sizeof(guid));
		if (Id *id = remote_ids.find(rej.local_id, guid))
			return id;
	}
	Id *id = find(rej.remote_id);
	if (!id)
		return nullptr;
	if (id->remote_id == 0)
		return awaits_answer(id->state()) ? id : nullptr;
	return id->remote_id == rej.local_id ? id : nullptr;
}

void Device::take(Port &port, Received received)
{
	const Event event = to_event(received.mad());
	const auto &pair = received.message<ib::CmPair>();
	Id *id = nullptr;
	switch (event) {
	case Event::got_req: {
		const auto &req = received.message<ib::CmReq>();
		id = remote_ids.find(req.local_id, req.ca_guid);
		if (!id) {
			count_failure(port, take_req(port, std::move(received)).error());
			return;
		}
		break;
	}
	case Event::got_sidr_req:
		id = resolutions.find(received.message<ib::CmSidrReq>().request_id,
				      received.wc().slid);
		if (!id) {
			count_failure(port, take_sidr_req(port, std::move(received)).error());
			return;
		}
		break;
	case Event::got_sidr_rep:
		id = find(received.message<ib::CmSidrRep>().request_id);
		break;
	case Event::got_rej:
	case Event::got_rej_stale:
		id = find_rejected(received.message<ib::CmRej>());
		break;
	case Event::got_rep:
	case Event::got_mra_req:
		/* This is the first message that contains the peer's communication ID. */
		id = find(pair.remote_id);
		if (id && id->remote_id != 0 && id->remote_id != pair.local_id)
			id = nullptr;
		break;
	default:
		id = find(pair);
		break;
	}
	if (id && !id->is_from_peer(received)) {
		port.counters.malformed++;
		/*
		 * The message came from an unknown address, so it has no effect. The peer repeats
		 * the DREQ, which is accepted if the SA has confirmed the peer's new address by
		 * then.
		 */
		if (event == Event::got_dreq)
			query_peer_path(*id, received, false);
	} else if (id)
		count_failure(port, id->receive(port, std::move(received), event).error());
	else if (event == Event::got_dreq)
		answer_unknown_dreq(port, received);
}

/*
 * Closes a connection that the peer has forgotten. If the message came from an unknown address,
 * first verifies the peer's address.
 */
void Device::end_stale(Id &old, const Received &received)
{
	lock_.assert_held();
	if (old.is_from_peer(received))
		kern::ignore(old.send_dreq({}));
	else
		query_peer_path(old, received, true);
}

/*
 * Counts a message that could not be handled and is dropped. The peer repeats it, unless its
 * addresses are invalid.
 */
void Device::count_failure(Port &port, int error)
{
	if (error == -ENOMEM)
		port.counters.no_memory++;
	else if (error == -EINVAL)
		port.counters.malformed++;
}

kern::Result<kern::Ref<Address>> Device::address_of_sender(const Port &port,
							   const Received &received)
{
	rdma_ah_attr attr;
	KERN_TRY_ERRNO(ib_init_ah_attr_from_wc(&ib_, port.number(), &received.wc(), received.grh(),
					       &attr));
	return Address::create(pd_, attr, received.wc().src_qp, received.wc().pkey_index);
}

/* Replies to a message that belongs to no ID. */
void Device::answer_by_itself(Port &port, const Received &received, ib::Mad &mad,
			      ib::CmAttribute attribute)
{
	mad.header = received.mad().header;
	mad.header.attr_id = static_cast<u16>(attribute);
	mad.header.attr_mod = 0u;
	if (auto to = address_of_sender(port, received); to.ok())
		kern::ignore(port.send(mad, to.take(), Port::Cause::asked));
	else
		count_failure(port, to.error());
}

void Device::reject(Port &port, const Received &received, ib_cm_rej_reason reason,
		    kern::ConstBytes info)
{
	lock_.assert_held();
	ib::Mad mad{};
	const auto &rejected = received.message<ib::CmPair>();
	auto &rej = ib::cm_message<ib::CmRej>(mad);
	if (received.mad().header.attr_id == static_cast<u16>(ib::CmAttribute::rep)) {
		rej.local_id = rejected.remote_id;
		rej.set_subject(ib::CmSubject::rep);
	}
	rej.remote_id = rejected.local_id;
	rej.reason = static_cast<u16>(reason);
	rej.set_info_length(static_cast<u8>(info.size()));
	kern::copy(kern::writable_bytes_of(rej.info), info);
	answer_by_itself(port, received, mad, ib::CmAttribute::rej);
}

/*
 * Answers a DREQ for an unknown connection. A peer that does not know that the connection has ended
 * would repeat the DREQ (IBA 12.9.8.3.3).
 */
void Device::answer_unknown_dreq(Port &port, const Received &received)
{
	lock_.assert_held();
	ib::Mad mad{};
	auto &drep = ib::cm_message<ib::CmDrep>(mad);
	drep.local_id = received.message<ib::CmDreq>().remote_id;
	drep.remote_id = received.message<ib::CmDreq>().local_id;
	answer_by_itself(port, received, mad, ib::CmAttribute::drep);
}

/*
 * Handles a REQ that belongs to no existing connection. The order of the checks determines the
 * reason in the REJ.
 */
kern::Result<> Device::take_req(Port &port, Received received)
{
	const auto &req = received.message<ib::CmReq>();
	ib_gid own{};

	if (Id *old = remote_qpns.find(req.qpn, req.ca_guid)) {
		/*
		 * The peer uses the QP for a new connection, so the old connection has ended for it
		 * (IBA 12.9.8.3.1). end_stale() verifies that the sender is the peer, and not
		 * another node that uses its QP number.
		 */
		reject(port, received, IB_CM_REJ_STALE_CONN);
		end_stale(*old, received);
		return {};
	}
	Id *listener = listeners.find(req.service_id);
	if (!listener) {
		reject(port, received, IB_CM_REJ_INVALID_SERVICE_ID);
		return {};
	}
	if (!listener->has_space_for_new()) {
		port.counters.no_room++;
		return {};
	}
	ib_port_cache cache{};
	(void)ib_get_cached_port(&ib_, port.number(), &cache);
	(void)rdma_query_gid(&ib_, port.number(), 0, &own);
	const sa_path_rec primary =
		from_wire(req.primary, req.pkey, req.path_mtu(), received.wc(), cache.lid);
	auto route = find_route(ib_, primary);
	if (!route.ok() || !this->port(route.value().port)) {
		reject(port, received, IB_CM_REJ_INVALID_GID, kern::bytes_of(own));
		return {};
	}
	if (req.has_alternate() &&
	    !find_route(ib_, from_wire(req.alternate, req.pkey, req.path_mtu(), received.wc(),
				       cache.lid))
		     .ok()) {
		reject(port, received, IB_CM_REJ_INVALID_ALT_GID, kern::bytes_of(own));
		return {};
	}
	auto address = Address::create(pd_, route.value().attr, received.wc().src_qp,
				       route.value().pkey_index, route.value().dgid);
	if (address.error() == -EINVAL) {
		reject(port, received, IB_CM_REJ_INVALID_GID, kern::bytes_of(own));
		return {};
	}
	KERN_TRY_ERRNO(address.error());
	auto id = KERN_TRY(Id::create(kern::Ref<Device>::share(*this), listener->cm_handler,
				      listener->context));
	return begin(std::move(id), port, std::move(received), address.take(), *listener,
		     Event::new_req);
}

kern::Result<> Device::take_sidr_req(Port &port, Received received)
{
	const auto &req = received.message<ib::CmSidrReq>();
	Id *listener = listeners.find(req.service_id);
	if (!listener) {
		ib::Mad mad{};
		auto &rep = ib::cm_message<ib::CmSidrRep>(mad);
		rep.request_id = req.request_id;
		rep.service_id = req.service_id;
		rep.status = IB_SIDR_UNSUPPORTED;
		answer_by_itself(port, received, mad, ib::CmAttribute::sidr_rep);
		return {};
	}
	if (!listener->has_space_for_new()) {
		port.counters.no_room++;
		return {};
	}
	auto address = KERN_TRY(address_of_sender(port, received));
	auto id = KERN_TRY(Id::create(kern::Ref<Device>::share(*this), listener->cm_handler,
				      listener->context));
	return begin(std::move(id), port, std::move(received), std::move(address), *listener,
		     Event::new_sidr_req);
}

/* Initialises a new ID. It belongs to the CM until its handler has been called. */
kern::Result<> Device::begin(kern::Owned<Id> id, Port &port, Received received,
			     kern::Ref<Address> address, Id &listener, Event event)
{
	auto begun = add(*id);
	if (begun.ok())
		begun = id->begin(port, std::move(received), std::move(address), listener, event);
	if (!begun.ok())
		id->finish(true);
	else
		(void)id.release();
	return begun;
}

kern::Result<> Id::begin(Port &port, Received received, kern::Ref<Address> address, Id &listener,
			 Event event)
{
	const bool connects = event == Event::new_req;
	if (connects) {
		const auto &req = received.message<ib::CmReq>();
		/*
		 * The consumer does not know the ID yet. If there is an error, the caller frees
		 * everything with the ID.
		 */
		KERN_TRY(device_->remote_ids.insert(peer_link, req.local_id, req.ca_guid));
		KERN_TRY(device_->remote_qpns.insert(remote_qpn_link, req.qpn, req.ca_guid));
		take_req(req);
	} else {
		const auto &req = received.message<ib::CmSidrReq>();
		resolves_ = true;
		KERN_TRY(
			device_->resolutions.insert(peer_link, req.request_id, received.wc().slid));
		service_id = req.service_id.value();
		remote_id = req.request_id.value();
	}
	life_ = Life::unknown;
	role_ = Role::passive;
	used_ = true;
	/*
	 * A REQ may arrive at one port for a path of another port. The response is sent through the
	 * path's port.
	 */
	port_ = device_->port(rdma_ah_get_port_num(&address->attr));
	address_ = std::move(address);
	tid_ = received.mad().header.tid;
	address_port_ = port.number();
	remote_cm_qpn = received.wc().src_qp;
	(void)ib_get_cached_pkey(device, port.number(), received.wc().pkey_index, &bth_pkey_);
	listener_ = &listener;
	turn_ = Turn::waits;
	listener.listening_->pending++;
	listener.listening_->new_ids.push_back(*this);
	change(event);
	deliver(connects ? IB_CM_REQ_RECEIVED : IB_CM_SIDR_REQ_RECEIVED, std::move(received));
	return {};
}

void Id::take_req(const ib::CmReq &req)
{
	service_id = req.service_id.value();
	remote_id = req.local_id.value();
	remote_qpn_ = req.qpn;
	remote_psn_ = req.psn;
	pkey_ = req.pkey;
	path_mtu_ = req.path_mtu();
	retry_count_ = req.retry_count();
	rnr_retry_count_ = req.rnr_retry_count();
	max_retries_ = req.max_cm_retries();
	qp_type_ = req.transport() == ib::CmTransport::uc         ? IB_QPT_UC
		   : req.transport() == ib::CmTransport::extended ? IB_QPT_XRC_TGT
								  : IB_QPT_RC;
	/*
	 * The values are swapped to the local view. The QP must be ready before the REP is sent, so
	 * these values apply until the REP specifies others (IBA 12.7.29, 12.7.30).
	 */
	responder_resources_ = req.initiator_depth;
	initiator_depth_ = req.responder_resources;
	qp_timeout_ = req.primary.ack_timeout();
	packet_lifetime_ = qp_timeout_ ? static_cast<u8>(qp_timeout_ - 1) : u8{0};
	response_wait_ms_ = wait_ms(time_ns(req.local_response_timeout()));
	wait_ms_ = response_wait_ms_;
}

bool Id::is_from_peer(const Received &received) const
{
	const auto is_source = [&](const Address *address) {
		return address && rdma_ah_get_dlid(&address->attr) == received.wc().slid;
	};
	return is_source(address_.get()) || is_source(alternate()) ||
	       (migration_ && is_source(migration_->former.get()));
}

/* Handles a message for this ID. Its contents are not trusted. The caller holds the lock. */
kern::Result<> Id::receive(Port &port, Received received, Event event)
{
	const auto &mad = received.mad();
	if (event == Event::got_dreq && received.message<ib::CmDreq>().remote_qpn != local_qpn_ &&
	    state_ != State::timewait)
		return {};
	/* Only the active side may propose alternate paths (IBA 12.8). */
	if (event == Event::got_lap && role_ == Role::active)
		return {};
	if (event == Event::got_lap && state_ == State::established && is_answered_lap(received))
		event = Event::got_lap_again;

	switch (transition(state_, event).action) {
	case Action::duplicate:
		port.counters.duplicates[counter_of(mad)]++;
		return {};
	case Action::answer_again:
		port.counters.duplicates[counter_of(mad)]++;
		repeat_answer(port, received, event);
		return {};
	case Action::reject_again:
		port.counters.duplicates[counter_of(mad)]++;
		device_->reject(port, received, IB_CM_REJ_STALE_CONN);
		return {};
	case Action::take:
		break;
	default:
		return {};
	}
	/* Ignore a response to an earlier proposal that has timed out. */
	if ((event == Event::got_apr || event == Event::got_mra_lap) && mad.header.tid != lap_tid())
		return {};
	if (event == Event::got_rep && rep_qpn(received.message<ib::CmRep>()) == 0) {
		port.counters.malformed++;
		return {};
	}
	if (!events_.has_space_for_message()) {
		port.counters.no_room++;
		return {};
	}
	switch (event) {
	case Event::got_rep:
		if (device_->remote_qpns.find(rep_qpn(received.message<ib::CmRep>()),
					      received.message<ib::CmRep>().ca_guid)) {
			take_stale_rep(port, received);
			return {};
		}
		KERN_TRY(take_rep(received));
		break;
	case Event::got_mra_req:
	case Event::got_mra_rep:
	case Event::got_mra_lap:
		take_mra(received.message<ib::CmMra>(), event);
		break;
	case Event::got_lap:
		KERN_TRY(take_lap(received));
		break;
	case Event::got_apr:
		take_apr(received.message<ib::CmApr>());
		break;
	case Event::got_dreq:
		tid_ = mad.header.tid;
		break;
	default:
		break;
	}
	change(event);
	if (event == Event::got_mra_req || event == Event::got_mra_rep ||
	    event == Event::got_mra_lap)
		wait(wait_ms_);
	deliver(to_type(event), std::move(received));
	return {};
}

u32 Id::rep_qpn(const ib::CmRep &rep) const
{
	return qp_type_ == IB_QPT_XRC_INI ? rep.eecn : rep.qpn;
}

/*
 * Handles a REP with a QP that the peer already uses in another connection with this node: the peer
 * has forgotten that connection (IBA 12.9.8.3.1). It is closed, and the REP rejected; the request
 * is retransmitted.
 */
void Id::take_stale_rep(Port &port, const Received &received)
{
	const auto &rep = received.message<ib::CmRep>();
	Id *old = device_->remote_qpns.find(rep_qpn(rep), rep.ca_guid);
	device_->reject(port, received, IB_CM_REJ_STALE_CONN);
	device_->end_stale(*old, received);
}

kern::Result<> Id::take_rep(const Received &received)
{
	const auto &rep = received.message<ib::CmRep>();
	KERN_TRY(device_->remote_ids.insert(peer_link, rep.local_id, rep.ca_guid));
	if (const auto known =
		    device_->remote_qpns.insert(remote_qpn_link, rep_qpn(rep), rep.ca_guid);
	    !known) {
		device_->remote_ids.erase(peer_link);
		return known;
	}
	remote_id = rep.local_id.value();
	remote_qpn_ = rep_qpn(rep);
	remote_psn_ = rep.psn;
	remote_cm_qpn = received.wc().src_qp;
	responder_resources_ = rep.initiator_depth;
	initiator_depth_ = rep.responder_resources;
	rnr_retry_count_ = rep.rnr_retry_count();
	target_ack_delay_ = rep.target_ack_delay();
	qp_timeout_ = ack_timeout(target_ack_delay_, packet_lifetime_);
	/* If the peer has not accepted the alternate path, it cannot be used. */
	if (rep.failover_accepted())
		migration_.reset();
	else if (migration_)
		migration_->loaded_timeout =
			ack_timeout(target_ack_delay_, migration_->loaded_lifetime);
	return {};
}

/*
 * Applies an MRA: each message now waits for the service timeout plus twice the packet lifetime
 * (IBA 12.9.8.2).
 */
void Id::take_mra(const ib::CmMra &mra, Event event)
{
	const u8 lifetime =
		event == Event::got_mra_lap ? migration_->proposed_lifetime : packet_lifetime_;
	wait_ms_ = wait_ms(time_ns(mra.service_timeout()) + time_ns(lifetime + 1u));
}

kern::Result<> Id::take_lap(const Received &received)
{
	const auto &lap = received.message<ib::CmLap>();
	ib_port_cache cache{};
	(void)ib_get_cached_port(device, address_port_, &cache);
	const auto path = from_wire(lap.path(), pkey_, path_mtu_, received.wc(), cache.lid);
	/*
	 * The consumer decides in its APR whether the path is usable. If no address could be
	 * created for it, no path is loaded.
	 */
	kern::Ref<Address> proposed;
	if (const auto route = find_route(device_->ib(), path); route.ok()) {
		const auto taken = take_route(route.value(), remote_cm_qpn, proposed);
		if (taken.error() == -ENOMEM)
			return taken;
	}
	KERN_TRY(prepare_migration());
	migration_->proposed = std::move(proposed);
	migration_->path = lap.path();
	migration_->proposed_timeout = migration_->path.ack_timeout();
	migration_->tid = received.mad().header.tid;
	return {};
}

/*
 * Returns true if the LAP is a repetition of the last one that was answered. The path is compared,
 * too, because a peer may use the same transaction ID for all its messages.
 */
bool Id::is_answered_lap(const Received &received) const
{
	const auto path = received.message<ib::CmLap>().path();
	return answered_to_ == Event::got_lap && migration_ &&
	       received.mad().header.tid == migration_->tid &&
	       kern::equal(kern::bytes_of(path), kern::bytes_of(migration_->path));
}

void Id::take_apr(const ib::CmApr &apr)
{
	if (apr.status == IB_CM_APR_SUCCESS)
		load_proposed();
	else
		migration_->proposed.reset();
}

/* Stores the alternate path that both sides have accepted. */
void Id::load_proposed()
{
	Migration &migration = *migration_;
	migration.loaded = std::move(migration.proposed);
	migration.loaded_timeout = migration.proposed_timeout;
	migration.loaded_lifetime = migration.proposed_lifetime;
	migration.reloaded = bool(migration.loaded);
}

/* Repeats the last response, if it was the response to this message. A DREQ is always answered. */
void Id::repeat_answer(Port &port, const Received &received, Event event)
{
	const Event to = event == Event::got_lap_again ? Event::got_lap : event;
	if (answered_to_ == to)
		kern::ignore(send(answered_.mad(), Port::Cause::asked));
	else if (event == Event::got_dreq)
		device_->answer_unknown_dreq(port, received);
}

} // namespace cm
