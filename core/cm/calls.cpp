// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the methods of an ID behind the functions of rdma/ib_cm.h. The state table
 * (states.hpp) determines in which states a method may be called.
 */
#include "device.hpp"

namespace cm
{
namespace
{

/* Prefix of service IDs that the CM assigns itself (IBA A3.2.3.3). */
constexpr u64 local_agent_mask = 0xff00000000000000, local_agent = IB_CM_ASSIGN_SERVICE_ID_HOST;
constexpr unsigned backlog_max = 4096;

bool right(const ib_cm_req_param &param)
{
	const sa_path_rec *path = param.primary_path, *alternate = param.alternate_path;
	return path && !param.peer_to_peer && param.qp_num != 0 && param.qp_num <= IB_QPN_MASK &&
	       param.starting_psn <= IB_QPN_MASK &&
	       (param.qp_type == IB_QPT_RC || param.qp_type == IB_QPT_UC ||
		param.qp_type == IB_QPT_XRC_INI) &&
	       param.remote_cm_response_timeout < 32 && param.local_cm_response_timeout < 32 &&
	       param.retry_count < 8 && param.rnr_retry_count < 8 && param.max_cm_retries < 16 &&
	       ib::mtu_bytes(static_cast<ib::Mtu>(path->mtu)) != 0 &&
	       (!alternate ||
		(ib::pkey_base(alternate->pkey.value()) == ib::pkey_base(path->pkey.value()) &&
		 alternate->mtu == path->mtu));
}

} // namespace

kern::Result<> Id::listen(u64 id, u64 mask)
{
	KERN_TRY(permit(Event::listen));
	const bool assigned = id == IB_CM_ASSIGN_SERVICE_ID_HOST;
	if (mask == 0)
		mask = ~u64{0};
	if (assigned ? mask != ~u64{0} : (id & local_agent_mask) == local_agent)
		return kern::Error{-EINVAL};
	if (assigned)
		id = device_->next_service_id++;
	auto listening = KERN_TRY(kern::make<Listening>(kern::Gfp::kernel));
	KERN_TRY(device_->listeners.insert(id, mask, *this));
	listening_ = std::move(listening);
	service_id = id & mask;
	service_mask = mask;
	change(Event::listen);
	return {};
}

kern::Result<> Id::set_backlog(unsigned int count)
{
	if (state_ != State::listen || count < 1 || count > backlog_max)
		return kern::Error{-EINVAL};
	listening_->backlog = count;
	return {};
}

kern::Result<> Id::take_route(const Route &route, u32 qpn, kern::Ref<Address> &address)
{
	Port *port = device_->port(route.port);
	if (!port)
		return kern::Error{-ENODEV};
	address = KERN_TRY(
		Address::create(device_->pd(), route.attr, qpn, route.pkey_index, route.dgid));
	return {};
}

kern::Result<> Id::send_req(const ib_cm_req_param &param)
{
	KERN_TRY(permit(Event::send_req));
	if (!right(param))
		return kern::Error{-EINVAL};
	const auto data = KERN_TRY(data_of(param.private_data, param.private_data_len));
	const sa_path_rec &path = *param.primary_path;
	const u8 ack_delay = device->attrs.local_ca_ack_delay;
	const Route route = KERN_TRY(find_route(*device, path));
	kern::Owned<Migration> migration;
	KERN_TRY(take_route(route, ib::qpn_gsi, address_));
	if (param.alternate_path) {
		migration = KERN_TRY(kern::make<Migration>(kern::Gfp::kernel));
		KERN_TRY(take_route(KERN_TRY(find_route(*device, *param.alternate_path)),
				    ib::qpn_gsi, migration->loaded));
		migration->loaded_lifetime = param.alternate_path->packet_life_time;
	}
	KERN_TRY(renumber());

	const bool xrc = param.qp_type == IB_QPT_XRC_INI;
	role_ = Role::active;
	port_ = device_->port(route.port);
	address_port_ = route.port;
	tid_ = own_tid();
	service_id = param.service_id.value();
	remote_cm_qpn = ib::qpn_gsi;
	qp_type_ = param.qp_type;
	local_qpn_ = param.qp_num;
	local_psn_ = param.starting_psn;
	pkey_ = path.pkey.value();
	path_mtu_ = path.mtu;
	responder_resources_ = param.responder_resources;
	initiator_depth_ = param.initiator_depth;
	retry_count_ = param.retry_count;
	max_retries_ = param.max_cm_retries;
	packet_lifetime_ = path.packet_life_time;
	/*
	 * The REP reports the peer's ACK delay. Timewait may begin before a REP arrives and needs a
	 * value, so use the local delay until then.
	 */
	qp_timeout_ = ack_timeout(ack_delay, packet_lifetime_);
	response_timeout_ = param.remote_cm_response_timeout;
	response_wait_ms_ = response_ms(packet_lifetime_, response_timeout_);
	wait_ms_ = response_wait_ms_;

	ib::Mad mad = make(ib::CmAttribute::req, tid_);
	auto &req = ib::cm_message<ib::CmReq>(mad);
	const u64 guid = device->node_guid;
	req.local_id = local_id.value();
	req.service_id = param.service_id.value();
	req.ca_guid = guid;
	req.qpn = local_qpn_;
	req.initiator_depth = initiator_depth_;
	req.set_remote_response_timeout(response_timeout_);
	req.set_transport(xrc                          ? ib::CmTransport::extended
			  : param.qp_type == IB_QPT_UC ? ib::CmTransport::uc
						       : ib::CmTransport::rc);
	req.set_flow_control(param.flow_control);
	req.psn = local_psn_;
	req.set_local_response_timeout(param.local_cm_response_timeout);
	req.pkey = pkey_;
	req.set_path_mtu(path_mtu_);
	req.set_max_cm_retries(max_retries_);
	if (xrc) {
		req.set_extended_transport(ib::cm_extended_xrc);
	} else {
		req.responder_resources = responder_resources_;
		req.set_retry_count(retry_count_);
		req.set_rnr_retry_count(param.rnr_retry_count);
		req.set_srq(param.srq);
	}
	req.primary = to_wire(path, ack_delay);
	if (param.alternate_path)
		req.alternate = to_wire(*param.alternate_path, ack_delay);
	KERN_TRY(fill(kern::writable_bytes_of(req.private_data), data));
	KERN_TRY(ask(mad, Event::send_req));
	/* Store the alternate path only after the REQ has been sent. */
	migration_ = std::move(migration);
	return {};
}

kern::Result<> Id::send_rep(const ib_cm_rep_param &param)
{
	KERN_TRY(permit(Event::send_rep));
	if (param.qp_num == 0 || param.qp_num > IB_QPN_MASK || param.starting_psn > IB_QPN_MASK ||
	    param.failover_accepted > 2 || param.rnr_retry_count > 7)
		return kern::Error{-EINVAL};
	const bool xrc = qp_type_ == IB_QPT_XRC_TGT;
	const u64 guid = device->node_guid;
	ib::Mad mad = make_pair(ib::CmAttribute::rep, tid_);
	auto &rep = ib::cm_message<ib::CmRep>(mad);
	(xrc ? rep.eecn : rep.qpn) = param.qp_num;
	rep.psn = param.starting_psn;
	rep.responder_resources = param.responder_resources;
	rep.initiator_depth = xrc ? u8{0} : param.initiator_depth;
	rep.set_target_ack_delay(device->attrs.local_ca_ack_delay);
	rep.set_failover_accepted(param.failover_accepted);
	rep.set_flow_control(!xrc && param.flow_control);
	rep.set_rnr_retry_count(param.rnr_retry_count);
	rep.set_srq(xrc || param.srq);
	rep.ca_guid = guid;
	KERN_TRY(fill(kern::writable_bytes_of(rep.private_data),
		      KERN_TRY(data_of(param.private_data, param.private_data_len))));

	wait_ms_ = response_wait_ms_;
	KERN_TRY(ask(mad, Event::send_rep));
	local_qpn_ = param.qp_num;
	local_psn_ = param.starting_psn;
	responder_resources_ = param.responder_resources;
	initiator_depth_ = param.initiator_depth;
	return {};
}

kern::Result<> Id::send_rtu(kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_rtu));
	ib::Mad mad = make_pair(ib::CmAttribute::rtu, tid_);
	KERN_TRY(fill(kern::writable_bytes_of(ib::cm_message<ib::CmRtu>(mad).private_data), data));
	return answer(mad, Event::got_rep, Event::send_rtu);
}

/* Closes the connection, even if the peer cannot be notified. */
kern::Result<> Id::send_dreq(kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_dreq));
	ib::Mad mad = make_pair(ib::CmAttribute::dreq, own_tid());
	auto &dreq = ib::cm_message<ib::CmDreq>(mad);
	dreq.remote_qpn = remote_qpn_;
	KERN_TRY(fill(kern::writable_bytes_of(dreq.private_data), data));
	wait_ms_ = response_wait_ms_;
	const auto asked = ask(mad, Event::send_dreq);
	if (!asked.ok()) {
		change(Event::send_dreq);
		change(Event::gave_up);
		/* Report the end of the connection now, because no response will come. */
		deliver(IB_CM_DREQ_ERROR);
	}
	return asked;
}

kern::Result<> Id::send_drep(kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_drep));
	ib::Mad mad = make_pair(ib::CmAttribute::drep, tid_);
	KERN_TRY(fill(kern::writable_bytes_of(ib::cm_message<ib::CmDrep>(mad).private_data), data));
	const auto sent = answer(mad, Event::got_dreq, Event::send_drep);
	if (!sent.ok()) {
		/*
		 * The connection is closed nevertheless. The DREP is kept, so that a repeated DREQ
		 * is answered with it.
		 */
		kern::ignore(keep_answer(mad, Event::got_dreq));
		change(Event::send_drep);
	}
	return sent;
}

kern::Result<> Id::send_rej(ib_cm_rej_reason reason, kern::ConstBytes info, kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_rej));
	ib::Mad mad = make_rej(reason);
	auto &rej = ib::cm_message<ib::CmRej>(mad);
	KERN_TRY(fill(kern::writable_bytes_of(rej.info), info));
	KERN_TRY(fill(kern::writable_bytes_of(rej.private_data), data));
	rej.set_info_length(static_cast<u8>(info.size()));
	KERN_TRY(send(mad));
	change(Event::send_rej);
	return {};
}

kern::Result<> Id::send_mra(u8 service_timeout, kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_mra));
	const bool later = service_timeout & IB_CM_MRA_FLAG_DELAY;
	const u8 time = service_timeout & ~IB_CM_MRA_FLAG_DELAY;
	if (time > 31)
		return kern::Error{-EINVAL};
	const Event to = state_ == State::req_rcvd   ? Event::got_req
			 : state_ == State::rep_rcvd ? Event::got_rep
						     : Event::got_lap;
	const auto subject = state_ == State::req_rcvd   ? ib::CmSubject::req
			     : state_ == State::rep_rcvd ? ib::CmSubject::rep
							 : ib::CmSubject::other;
	ib::Mad mad = make_pair(ib::CmAttribute::mra, to == Event::got_lap ? lap_tid() : tid_);
	auto &mra = ib::cm_message<ib::CmMra>(mad);
	mra.set_subject(subject);
	mra.set_service_timeout(time);
	KERN_TRY(fill(kern::writable_bytes_of(mra.private_data), data));
	if (!later)
		return answer(mad, to, Event::send_mra);
	KERN_TRY(keep_answer(mad, to));
	change(Event::send_mra);
	return {};
}

kern::Result<> Id::send_lap(const sa_path_rec &path, kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_lap));
	if (role_ != Role::active)
		return kern::Error{-EINVAL};
	const Route route = KERN_TRY(find_route(*device, path));
	/*
	 * Each LAP has its own transaction ID, so that the peer can distinguish a new LAP from a
	 * repeated one.
	 */
	const u64 tid = (lap_tid() ? lap_tid() : tid_) + 1;
	ib::Mad mad =
		make_pair(ib::CmAttribute::lap, u64{port_->hi_tid()} << 32 | static_cast<u32>(tid));
	auto &lap = ib::cm_message<ib::CmLap>(mad);
	lap.remote_qpn = remote_qpn_;
	lap.set_remote_response_timeout(response_timeout_);
	lap.set_path(to_wire(path, device->attrs.local_ca_ack_delay));
	KERN_TRY(fill(kern::writable_bytes_of(lap.private_data), data));
	kern::Ref<Address> proposed;
	KERN_TRY(take_route(route, remote_cm_qpn, proposed));
	KERN_TRY(prepare_migration());

	wait_ms_ = response_ms(path.packet_life_time, response_timeout_);
	KERN_TRY(ask(mad, Event::send_lap));
	migration_->tid = mad.header.tid;
	migration_->proposed = std::move(proposed);
	migration_->proposed_lifetime = path.packet_life_time;
	migration_->proposed_timeout = ack_timeout(target_ack_delay_, path.packet_life_time);
	return {};
}

kern::Result<> Id::send_apr(ib_cm_apr_status status, kern::ConstBytes info, kern::ConstBytes data)
{
	KERN_TRY(permit(Event::send_apr));
	ib::Mad mad = make_pair(ib::CmAttribute::apr, lap_tid());
	auto &apr = ib::cm_message<ib::CmApr>(mad);
	apr.status = static_cast<u8>(status);
	KERN_TRY(fill(kern::writable_bytes_of(apr.info), info));
	KERN_TRY(fill(kern::writable_bytes_of(apr.private_data), data));
	apr.info_length = static_cast<u8>(info.size());
	KERN_TRY(answer(mad, Event::got_lap, Event::send_apr));
	take_apr(apr);
	return {};
}

kern::Result<> Id::send_sidr_req(const ib_cm_sidr_req_param &param)
{
	KERN_TRY(permit(Event::send_sidr_req));
	if (!param.path || param.timeout_ms == 0 || param.max_cm_retries > 15)
		return kern::Error{-EINVAL};
	const Route route = KERN_TRY(find_route(*device, *param.path));
	KERN_TRY(take_route(route, ib::qpn_gsi, address_));
	KERN_TRY(renumber());

	role_ = Role::active;
	port_ = device_->port(route.port);
	address_port_ = route.port;
	tid_ = own_tid();
	service_id = param.service_id.value();
	max_retries_ = param.max_cm_retries;
	wait_ms_ = param.timeout_ms < longest_wait_ms ? static_cast<u32>(param.timeout_ms)
						      : longest_wait_ms;

	ib::Mad mad = make(ib::CmAttribute::sidr_req, tid_);
	auto &req = ib::cm_message<ib::CmSidrReq>(mad);
	req.request_id = local_id.value();
	req.pkey = param.path->pkey.value();
	req.service_id = param.service_id.value();
	KERN_TRY(fill(kern::writable_bytes_of(req.private_data),
		      KERN_TRY(data_of(param.private_data, param.private_data_len))));
	return ask(mad, Event::send_sidr_req);
}

kern::Result<> Id::send_sidr_rep(const ib_cm_sidr_rep_param &param)
{
	KERN_TRY(permit(Event::send_sidr_rep));
	if (param.qp_num > IB_QPN_MASK)
		return kern::Error{-EINVAL};
	ib::Mad mad = make(ib::CmAttribute::sidr_rep, tid_);
	auto &rep = ib::cm_message<ib::CmSidrRep>(mad);
	rep.request_id = remote_id.value();
	rep.status = static_cast<u8>(param.status);
	rep.qpn = param.qp_num;
	rep.service_id = service_id.value();
	rep.qkey = param.qkey;
	KERN_TRY(fill(kern::writable_bytes_of(rep.info),
		      KERN_TRY(data_of(param.info, param.info_length))));
	KERN_TRY(fill(kern::writable_bytes_of(rep.private_data),
		      KERN_TRY(data_of(param.private_data, param.private_data_len))));
	rep.info_length = param.info_length;
	KERN_TRY(send(mad));
	change(Event::send_sidr_rep);
	return {};
}

kern::Result<> Id::communicates()
{
	KERN_TRY(permit(Event::communicates));
	change(Event::communicates);
	deliver(IB_CM_USER_ESTABLISHED);
	return {};
}

/*
 * Sends by the alternate path from now on; after that, there is no alternate path (IBA 17.2.8.1).
 */
kern::Result<> Id::migrated()
{
	KERN_TRY(permit(Event::migrated));
	if (!alternate())
		return kern::Error{-EINVAL};
	port_ = device_->port(rdma_ah_get_port_num(&alternate()->attr));
	address_port_ = port_->number();
	migration_->former = std::exchange(address_, std::move(migration_->loaded));
	qp_timeout_ = migration_->loaded_timeout;
	packet_lifetime_ = migration_->loaded_lifetime;
	migration_->reloaded = false;
	return {};
}

} // namespace cm
