// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the methods of an ID behind the functions of rdma/rdma_cm.h, and the QP state changes
 * that an ID makes. Resolution is in resolve.cpp.
 */
#include <kern/log.hpp>
#include <rdma/ib_cache.h>
#include <rdma/objects.hpp>

#include "manager.hpp"

namespace rdma_cm
{

kern::Result<> Id::listen(int backlog, Listeners &doomed)
{
	if (state_ == State::idle)
		KERN_TRY(bind(any_of(RDMA_AF_INET)));
	KERN_TRY(permit(Event::listen));
	constexpr int most = 4096, usual = 256;
	KERN_TRY(Manager::get().listen(*this,
				       static_cast<unsigned int>(backlog <= 0     ? usual
								 : backlog > most ? most
										  : backlog),
				       doomed));
	change(Event::listen);
	return {};
}

/* Creates the connection, unless an earlier call has created it but could not start it. */
kern::Result<> Id::make_connection()
{
	if (!connection_)
		connection_ = KERN_TRY(
			Manager::get().transport_of(*device, port_num).create_connection(*this));
	return {};
}

/*
 * Returns the connection, or nullptr if it has not begun. A connection that could not begin is not
 * used, because its state has not changed.
 */
Connection *Id::connection() const
{
	return state_ == State::route_resolved ? nullptr : connection_.get();
}

kern::Result<> Id::connect(const rdma_conn_param &param)
{
	KERN_TRY(permit(Event::connect));
	if (param.retry_count > 7 || param.rnr_retry_count > 7 || param.qp_num > IB_QPN_MASK)
		return kern::Error{-EINVAL};
	if (qp_type == IB_QPT_UD)
		KERN_TRY(find_qkey(destination().family == RDMA_AF_IB ? param.qkey : 0));
	KERN_TRY(make_connection());
	KERN_TRY(connection_->connect(param));
	set_qp_number(param.qp_num);
	change(Event::connect);
	return {};
}

/*
 * The consumer of an ID that was created for a request specifies the parameters of the connection
 * here. If the ID has a QP, it is modified, too.
 */
kern::Result<> Id::accept(const rdma_conn_param *param)
{
	KERN_TRY(permit(Event::accept));
	if (!connection_)
		return kern::Error{-EINVAL};
	const auto accepted = [&]() -> kern::Result<> {
		if (qp_type == IB_QPT_UD) {
			KERN_TRY(find_qkey(param ? param->qkey : 0));
		} else if (qp) {
			KERN_TRY(modify_qp(IB_QPS_RTR, param));
			if (!connection_->controls_qp())
				KERN_TRY(modify_qp(IB_QPS_RTS, param));
		}
		return connection_->accept(param);
	}();
	if (!accepted.ok()) {
		fail_qp();
		(void)connection_->reject(nullptr, 0, IB_CM_REJ_CONSUMER_DEFINED);
	} else if (param) {
		set_qp_number(param->qp_num);
	}
	return accepted;
}

kern::Result<> Id::reject(const void *data, u8 length, u8 reason)
{
	KERN_TRY(permit(Event::reject));
	if (!connection_ || (length && !data))
		return kern::Error{-EINVAL};
	return connection_->reject(data, length,
				   reason ? reason : static_cast<u8>(IB_CM_REJ_CONSUMER_DEFINED));
}

kern::Result<> Id::notify(ib_event_type event)
{
	if (!connection())
		return kern::Error{-EINVAL};
	return connection()->notify(event);
}

kern::Result<> Id::disconnect()
{
	if (!connection())
		return kern::Error{-EINVAL};
	/*
	 * If the transport controls the QP, disconnecting completes all posted requests first, so
	 * the QP must not be moved to ERR here.
	 */
	if (!connection()->controls_qp())
		fail_qp();
	return connection()->disconnect();
}

void Id::set_service_type(u8 tos)
{
	tos_ = tos;
}

kern::Result<> Id::set_ack_timeout(u8 timeout)
{
	if ((qp_type != IB_QPT_RC && qp_type != IB_QPT_XRC_INI) || timeout > 31)
		return kern::Error{-EINVAL};
	ack_timeout_ = timeout;
	has_ack_timeout_ = true;
	return {};
}

kern::Result<> Id::set_min_rnr_timer(u8 timer)
{
	if ((qp_type != IB_QPT_RC && qp_type != IB_QPT_XRC_TGT) || timer > 31)
		return kern::Error{-EINVAL};
	min_rnr_timer_ = timer;
	has_min_rnr_timer_ = true;
	return {};
}

kern::Result<> Id::set_reuse(bool wanted)
{
	if (state_ == State::idle || (wanted && state_ != State::listen)) {
		Manager::get().share_port(*this, wanted);
		return {};
	}
	return kern::Error{-EINVAL};
}

kern::Result<> Id::set_afonly(bool wanted)
{
	KERN_TRY(permit(Event::set_afonly));
	afonly = wanted;
	has_afonly_ = true;
	return {};
}

kern::Result<> Id::find_qkey(u32 wanted)
{
	if (wanted) {
		qkey_ = wanted;
	} else if (ps == RDMA_PS_IPOIB) {
		ib_sa_mcmember_rec group{};
		KERN_TRY_ERRNO(
			ib_sa_get_mcmember_rec(device, port_num, &interface.broadcast, &group));
		qkey_ = group.qkey.value();
	} else {
		qkey_ = RDMA_UDP_QKEY;
	}
	return {};
}

kern::Result<> Id::qp_attributes(ib_qp_attr &attr, int &mask)
{
	if (!device)
		return kern::Error{-EINVAL};
	if (connection() && qp_type != IB_QPT_UD) {
		KERN_TRY(connection()->qp_attributes(attr, mask));
		if (mask & IB_QP_TIMEOUT && has_ack_timeout_)
			attr.timeout = ack_timeout_;
		if (mask & IB_QP_MIN_RNR_TIMER && has_min_rnr_timer_)
			attr.min_rnr_timer = min_rnr_timer_;
	} else {
		KERN_TRY(Manager::get()
				 .transport_of(*device, port_num)
				 .idle_attributes(*this, attr, mask));
		if (qp_type == IB_QPT_UD) {
			if (!qkey_)
				KERN_TRY(find_qkey());
			attr.qkey = qkey_;
			mask |= IB_QP_QKEY;
		}
	}
	if (attr.qp_state == IB_QPS_RTR)
		attr.rq_psn = psn_;
	return {};
}

kern::Result<> Id::modify_qp(ib_qp_state state, const rdma_conn_param *param)
{
	ib_qp_attr attr{};
	int mask = 0;
	attr.qp_state = state;
	KERN_TRY(qp_attributes(attr, mask));
	if (param && (mask & IB_QP_MAX_DEST_RD_ATOMIC))
		attr.max_dest_rd_atomic = param->responder_resources;
	if (param && (mask & IB_QP_MAX_QP_RD_ATOMIC))
		attr.max_rd_atomic = param->initiator_depth;
	return kern::check(ib_modify_qp(qp, &attr, mask));
}

kern::Result<> Id::create_qp(ib_pd &pd, ib_qp_init_attr &attr)
{
	if (!device || qp || pd.device != device || attr.qp_type != qp_type)
		return kern::Error{-EINVAL};
	if (!attr.port_num)
		attr.port_num = port_num;
	qp = KERN_TRY(rdma::check(ib_create_qp(&pd, &attr)));
	qp_number_ = qp->qp_num;
	const auto begun = [&]() -> kern::Result<> {
		KERN_TRY(modify_qp(IB_QPS_INIT));
		if (qp_type != IB_QPT_UD)
			return {};
		ib_qp_attr next{};
		next.qp_state = IB_QPS_RTR;
		KERN_TRY_ERRNO(ib_modify_qp(qp, &next, IB_QP_STATE));
		next.qp_state = IB_QPS_RTS;
		return kern::check(ib_modify_qp(qp, &next, IB_QP_STATE | IB_QP_SQ_PSN));
	}();
	if (!begun.ok())
		destroy_qp();
	return begun;
}

/*
 * Destroys the QP. If it is still in use, it stays with the ID, so that the consumer can destroy it
 * later.
 */
void Id::destroy_qp()
{
	if (!qp)
		return;
	if (const int status = ib_destroy_qp(qp)) {
		kern_warning("the QP of an id is in use and is not destroyed (%d)\n", status);
		return;
	}
	qp_number_ = 0;
	qp = nullptr;
}

/* Stores the number of the consumer's own QP, if the ID has no QP. */
void Id::set_qp_number(u32 number)
{
	if (!qp)
		qp_number_ = number;
}

/* Moves the QP to ERR. Outstanding requests complete with errors, which notifies the consumer. */
void Id::fail_qp()
{
	if (!qp)
		return;
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_ERR;
	(void)ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/*
 * Connects the QP after the peer has accepted: moves it to INIT again with the access rights of the
 * connection, then to RTR and RTS, and sends the RTU.
 */
kern::Result<> Id::connect_qp()
{
	const auto connected = [&]() -> kern::Result<> {
		KERN_TRY(modify_qp(IB_QPS_RTR));
		KERN_TRY(modify_qp(IB_QPS_RTS));
		return connection_->accept(nullptr);
	}();
	if (!connected.ok()) {
		fail_qp();
		(void)connection_->reject(nullptr, 0, IB_CM_REJ_CONSUMER_DEFINED);
	}
	return connected;
}

kern::Result<> Id::begin(const Ends &ends, const Interface &own, Request &request)
{
	kern::Guard guard(lock_);
	route.addr.src_addr = ends.local;
	route.addr.dst_addr = ends.peer;
	if (request.path) {
		route.path_rec = *request.path;
		route.num_paths = 1;
		route.addr.dgid = request.path->dgid;
	}
	KERN_TRY(Manager::get().attach_to(*this, *request.device, request.port_num));
	route.addr.sgid = request.sgid;
	route.addr.pkey = request.pkey;
	interface = own;
	connection_ = KERN_TRY(request.take(*this));
	change(Event::request);
	return {};
}

} // namespace rdma_cm
