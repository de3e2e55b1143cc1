// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Calls the handler of a CM ID for each of its events, in a work item. */
#include "device.hpp"

#include <rdma/ib_cache.h>

namespace cm
{
namespace
{

ib_qp_type to_qp_type(const ib::CmReq &req)
{
	switch (req.transport()) {
	case ib::CmTransport::uc:
		return IB_QPT_UC;
	case ib::CmTransport::extended:
		return IB_QPT_XRC_TGT;
	default:
		return IB_QPT_RC;
	}
}

template<std::size_t size>
void set_private_data(ib_cm_event &event, const std::uint8_t (&data)[size])
{
	event.private_data = data;
	event.private_data_len = size;
}

} // namespace

void Id::deliver(ib_cm_event_type type, Received received)
{
	const bool has_space = events_.push(type, std::move(received));
	if (!KERN_WARN_ON(!has_space))
		start();
}

/*
 * Schedules run(). For the events of a new ID, this waits until fewer than turns_max new IDs of the
 * listener are being delivered.
 */
void Id::start()
{
	if (turn_ == Turn::waits) {
		if (listener_->listening_->turns == turns_max)
			return;
		listener_->listening_->turns++;
		turn_ = Turn::has;
	}
	work_queue().queue(work_);
}

/* The function of the work item. No other function calls the handler. */
void Id::run()
{
	for (;;) {
		Delivery delivery;
		Id *listener;
		{
			kern::Guard guard(device_->lock());
			if (life_ == Life::ended || events_.empty())
				return;
			delivery = events_.pop();
			listener = listener_;
			if (listener)
				listener->listening_->handlers_running.fetch_add(1);
			running_in_.store_relaxed(kern_context());
		}
		ib_cm_event event{};
		sa_path_rec paths[2];
		event.event = delivery.type;
		fill_event(event, delivery.received, listener, paths);
		const int result = cm_handler(this, &event);

		bool ends;
		{
			kern::Guard guard(device_->lock());
			running_in_.store_relaxed(0);
			leave_listener();
			if (listener) {
				/*
				 * The listener may be destroyed as soon as the count is
				 * decremented, so do not access it after that.
				 */
				listener->listening_->handlers_running.fetch_sub(1);
				device_->handlers_done.wake_all();
			}
			ends = result != 0 && life_ != Life::ended;
			if (ends)
				/*
				 * If the handler has no memory, no REJ is needed: the peer repeats
				 * its message.
				 */
				finish(result == -ENOMEM && (state_ == State::req_rcvd ||
							     state_ == State::sidr_req_rcvd));
			else if (life_ == Life::unknown)
				life_ = Life::known;
		}
		if (ends) {
			reap(kern::Owned<Id>::adopt(this));
			return;
		}
	}
}

void Id::leave_listener()
{
	if (!listener_)
		return;
	Listening &listening = *std::exchange(listener_, nullptr)->listening_;
	listening.pending--;
	new_node.unlink();
	if (std::exchange(turn_, Turn::none) != Turn::has)
		return;
	listening.turns--;
	/* IDs with Turn::has are at the beginning of the list; start the first one that waits. */
	for (Id &fresh : listening.new_ids)
		if (fresh.turn_ == Turn::waits) {
			fresh.start();
			return;
		}
}

void Id::wait_for_handlers()
{
	if (listening_)
		device_->handlers_done.wait(
			[this] { return listening_->handlers_running.load_acquire() == 0; });
}

/*
 * Fills in the event from the received message. Its pointers refer to the message and to `paths`.
 */
void Id::fill_event(ib_cm_event &event, const Received &received, Id *listener,
		    sa_path_rec (&paths)[2]) const
{
	switch (event.event) {
	case IB_CM_REQ_RECEIVED:
		fill_req(event, received, listener, paths);
		return;
	case IB_CM_REP_RECEIVED:
		fill_rep(event, received.message<ib::CmRep>());
		return;
	case IB_CM_RTU_RECEIVED:
		set_private_data(event, received.message<ib::CmRtu>().private_data);
		return;
	case IB_CM_DREQ_RECEIVED:
		set_private_data(event, received.message<ib::CmDreq>().private_data);
		return;
	case IB_CM_DREP_RECEIVED:
		set_private_data(event, received.message<ib::CmDrep>().private_data);
		return;
	case IB_CM_MRA_RECEIVED: {
		const auto &mra = received.message<ib::CmMra>();
		event.param.mra_rcvd.service_timeout = mra.service_timeout();
		set_private_data(event, mra.private_data);
		return;
	}
	case IB_CM_REJ_RECEIVED: {
		const auto &rej = received.message<ib::CmRej>();
		event.param.rej_rcvd = {.reason = static_cast<ib_cm_rej_reason>(rej.reason.value()),
					.ari = rej.info,
					.ari_length = rej.info_length()};
		set_private_data(event, rej.private_data);
		return;
	}
	case IB_CM_LAP_RECEIVED: {
		const auto &lap = received.message<ib::CmLap>();
		ib_port_cache cache{};
		(void)ib_get_cached_port(device, address_port_, &cache);
		paths[0] = from_wire(lap.path(), pkey_, path_mtu_, received.wc(), cache.lid);
		event.param.lap_rcvd.alternate_path = &paths[0];
		set_private_data(event, lap.private_data);
		return;
	}
	case IB_CM_APR_RECEIVED: {
		const auto &apr = received.message<ib::CmApr>();
		event.param.apr_rcvd = {.ap_status = static_cast<ib_cm_apr_status>(apr.status),
					.apr_info = apr.info,
					.info_len = apr.info_length};
		set_private_data(event, apr.private_data);
		return;
	}
	case IB_CM_SIDR_REQ_RECEIVED: {
		const auto &req = received.message<ib::CmSidrReq>();
		event.param.sidr_req_rcvd = {.listen_id = listener,
					     .service_id = req.service_id.value(),
					     .port = address_port_,
					     .pkey = req.pkey.value(),
					     .bth_pkey = bth_pkey_};
		set_private_data(event, req.private_data);
		return;
	}
	case IB_CM_SIDR_REP_RECEIVED: {
		const auto &rep = received.message<ib::CmSidrRep>();
		event.param.sidr_rep_rcvd = {.status = static_cast<ib_cm_sidr_status>(rep.status),
					     .qkey = rep.qkey,
					     .qpn = rep.qpn,
					     .info = rep.info,
					     .info_len = rep.info_length};
		set_private_data(event, rep.private_data);
		return;
	}
	case IB_CM_USER_ESTABLISHED:
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_DEVICE_REMOVAL:
		return;
	case IB_CM_REQ_ERROR:
	case IB_CM_REP_ERROR:
	case IB_CM_DREQ_ERROR:
	case IB_CM_LAP_ERROR:
	case IB_CM_SIDR_REQ_ERROR:
		event.param.send_status = IB_WC_RESP_TIMEOUT_ERR;
		return;
	}
}

/*
 * The resources of each side limit the requests of the other (IBA 12.7.29, 12.7.30), so the two
 * values are swapped.
 */
void Id::fill_req(ib_cm_event &event, const Received &received, Id *listener,
		  sa_path_rec (&paths)[2]) const
{
	const auto &req = received.message<ib::CmReq>();
	auto &param = event.param.req_rcvd;
	ib_port_cache cache{};
	(void)ib_get_cached_port(device, address_port_, &cache);
	paths[0] = from_wire(req.primary, req.pkey, req.path_mtu(), received.wc(), cache.lid);
	paths[0].service_id = req.service_id.value();
	param.listen_id = listener;
	param.bth_pkey = bth_pkey_;
	/* The port of the primary path, which may differ from the port at which the REQ arrived. */
	param.port = address_port_;
	(void)ib_find_cached_gid(device, &paths[0].sgid, &param.port, &param.sgid_index);
	param.primary_path = &paths[0];
	if (req.has_alternate()) {
		paths[1] = from_wire(req.alternate, req.pkey, req.path_mtu(), received.wc(),
				     cache.lid);
		paths[1].service_id = req.service_id.value();
		param.alternate_path = &paths[1];
	}
	param.remote_ca_guid = req.ca_guid.value();
	param.remote_qkey = req.qkey;
	param.remote_qpn = req.qpn;
	param.qp_type = to_qp_type(req);
	param.starting_psn = req.psn;
	param.responder_resources = req.initiator_depth;
	param.initiator_depth = req.responder_resources;
	param.local_cm_response_timeout = req.remote_response_timeout();
	param.remote_cm_response_timeout = req.local_response_timeout();
	param.flow_control = req.flow_control();
	param.retry_count = req.retry_count();
	param.rnr_retry_count = req.rnr_retry_count();
	param.srq = req.srq();
	set_private_data(event, req.private_data);
}

void Id::fill_rep(ib_cm_event &event, const ib::CmRep &rep) const
{
	event.param.rep_rcvd = {
		.remote_ca_guid = rep.ca_guid.value(),
		.remote_qkey = rep.qkey,
		/*
		 * An XRC target sends its QP number in the field that otherwise contains an EEC
		 * number (IBA A14.4.1).
		 */
		.remote_qpn = qp_type_ == IB_QPT_XRC_INI ? rep.eecn : rep.qpn,
		.starting_psn = rep.psn,
		.responder_resources = rep.initiator_depth,
		.initiator_depth = rep.responder_resources,
		.target_ack_delay = rep.target_ack_delay(),
		.failover_accepted = rep.failover_accepted(),
		.flow_control = rep.flow_control(),
		.rnr_retry_count = rep.rnr_retry_count(),
		.srq = rep.srq(),
	};
	set_private_data(event, rep.private_data);
}

} // namespace cm
