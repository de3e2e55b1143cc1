// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Maps IDs of the RDMA CM to IDs of InfiniBand's communication manager (IBA A11.4). */
#include "ib_transport.hpp"

#include <kern/span.hpp>
#include <rdma/ib_cache.h>
#include <rdma/objects.hpp>

#include "manager.hpp"

namespace rdma_cm
{
namespace
{

/*
 * Timeouts of 4.096 us * 2^n: a peer must answer within 4.3 s, and a consumer within 69 s. Each
 * request is repeated up to max_retries times.
 */
constexpr u8 response_timeout = 20, service_timeout = 24, max_retries = 15;
constexpr unsigned long resolution_ms = 1ul << (response_timeout - 8);

class IbConnection final : public Connection
{
public:
	static kern::Result<kern::Owned<Connection>> create(Id &id)
	{
		auto made =
			KERN_TRY(kern::adopt(new (kern::Gfp::kernel) IbConnection(id, nullptr)));
		made->cm_id_ =
			KERN_TRY(rdma::check(ib_create_cm_id(id.device, on_event, made.get())));
		return kern::Owned<Connection>(std::move(made));
	}
	/*
	 * Creates the connection for a request. @cm_id is the ID that the CM has created for it.
	 * Called in the handler of that ID.
	 */
	static kern::Result<kern::Owned<IbConnection>> create_passive(Id &id, ib_cm_id &cm_id)
	{
		return kern::adopt(new (kern::Gfp::kernel) IbConnection(id, &cm_id));
	}
	~IbConnection() override
	{
		if (cm_id_)
			ib_destroy_cm_id(cm_id_);
	}

	/*
	 * For a passive connection: take_over() directs the events of the CM's ID to this
	 * connection. detach() leaves the CM's ID to the CM, so that the destructor does not
	 * destroy it.
	 */
	void take_over()
	{
		cm_id_->context = this;
		cm_id_->cm_handler = on_event;
	}
	void detach() { cm_id_ = nullptr; }

	kern::Result<> connect(const rdma_conn_param &param) override;
	kern::Result<> accept(const rdma_conn_param *param) override;
	kern::Result<> reject(const void *data, u8 length, u8 reason) override;
	kern::Result<> disconnect() override;
	kern::Result<> notify(ib_event_type event) override
	{
		return kern::check(ib_cm_notify(cm_id_, event));
	}
	kern::Result<> qp_attributes(ib_qp_attr &attr, int &mask) override
	{
		return kern::check(ib_cm_init_qp_attr(cm_id_, &attr, &mask));
	}

private:
	/* Private data with the header that IBA A11.4.3 specifies. */
	struct PrivateData {
		u8 bytes[IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE]{};
		u8 length = 0;
	};

	IbConnection(Id &id, ib_cm_id *cm_id) : id_(id), cm_id_(cm_id), passive_(cm_id != nullptr)
	{
	}
	bool datagrams() const { return id_.qp_type == IB_QPT_UD; }
	kern::Result<> fill(PrivateData &data, const rdma_conn_param &param,
			    std::size_t most) const;
	kern::Result<> resolve(const rdma_conn_param &param);
	kern::Result<> answer_resolution(const rdma_conn_param *param);
	TransportEvent read_resolution(const ib_cm_event &event) const;
	static int on_event(ib_cm_id *cm_id, const ib_cm_event *event);

	Id &id_;
	ib_cm_id *cm_id_;
	const bool passive_;
};

kern::Result<> IbConnection::fill(PrivateData &data, const rdma_conn_param &param,
				  std::size_t most) const
{
	std::size_t begin = 0;
	if (id_.destination().family != RDMA_AF_IB) {
		const IpHeader header = make_header(id_.source(), id_.destination());
		__builtin_memcpy(data.bytes, &header, sizeof(header));
		begin = sizeof(header);
	}
	if (begin + param.private_data_len > most ||
	    (param.private_data_len && !param.private_data))
		return kern::Error{-EINVAL};
	if (param.private_data_len)
		__builtin_memcpy(data.bytes + begin, param.private_data, param.private_data_len);
	data.length = static_cast<u8>(begin + param.private_data_len);
	return {};
}

kern::Result<> IbConnection::connect(const rdma_conn_param &param)
{
	if (datagrams())
		return resolve(param);
	PrivateData data;
	KERN_TRY(fill(data, param, IB_CM_REQ_PRIVATE_DATA_SIZE));
	ib_cm_req_param req{};
	req.primary_path = &id_.route.path_rec;
	req.service_id = service_of(id_.ps, id_.destination());
	req.qp_num = id_.qp ? id_.qp->qp_num : param.qp_num;
	req.qp_type = id_.qp_type;
	req.starting_psn = id_.psn();
	req.private_data = data.bytes;
	req.private_data_len = data.length;
	req.responder_resources = param.responder_resources;
	req.initiator_depth = param.initiator_depth;
	req.flow_control = param.flow_control;
	req.retry_count = param.retry_count;
	req.rnr_retry_count = param.rnr_retry_count;
	req.remote_cm_response_timeout = response_timeout;
	req.local_cm_response_timeout = response_timeout;
	req.max_cm_retries = max_retries;
	req.srq = id_.qp ? id_.qp->srq != nullptr : param.srq;
	return kern::check(ib_send_cm_req(cm_id_, &req));
}

kern::Result<> IbConnection::resolve(const rdma_conn_param &param)
{
	PrivateData data;
	KERN_TRY(fill(data, param, IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE));
	ib_cm_sidr_req_param req{};
	req.path = &id_.route.path_rec;
	req.service_id = service_of(id_.ps, id_.destination());
	req.timeout_ms = resolution_ms;
	req.private_data = data.bytes;
	req.private_data_len = data.length;
	req.max_cm_retries = max_retries;
	return kern::check(ib_send_cm_sidr_req(cm_id_, &req));
}

kern::Result<> IbConnection::accept(const rdma_conn_param *param)
{
	if (!passive_)
		return kern::check(datagrams() ? -EINVAL : ib_send_cm_rtu(cm_id_, nullptr, 0));
	if (datagrams())
		return answer_resolution(param);
	if (!param || param->rnr_retry_count > 7)
		return kern::Error{-EINVAL};
	ib_cm_rep_param rep{};
	rep.qp_num = id_.qp ? id_.qp->qp_num : param->qp_num & IB_QPN_MASK;
	rep.starting_psn = id_.psn();
	rep.private_data = param->private_data;
	rep.private_data_len = param->private_data_len;
	rep.responder_resources = param->responder_resources;
	rep.initiator_depth = param->initiator_depth;
	/* 1 means that failover is not supported: an alternate path in the REQ is not used. */
	rep.failover_accepted = 1;
	rep.flow_control = param->flow_control;
	rep.rnr_retry_count = param->rnr_retry_count;
	rep.srq = id_.qp ? id_.qp->srq != nullptr : param->srq;
	return kern::check(ib_send_cm_rep(cm_id_, &rep));
}

kern::Result<> IbConnection::answer_resolution(const rdma_conn_param *param)
{
	if (!param && !id_.qp)
		return kern::Error{-EINVAL};
	ib_cm_sidr_rep_param rep{};
	rep.qp_num = id_.qp ? id_.qp->qp_num : param->qp_num & IB_QPN_MASK;
	rep.qkey = id_.qkey();
	rep.status = IB_SIDR_SUCCESS;
	if (param) {
		rep.private_data = param->private_data;
		rep.private_data_len = param->private_data_len;
	}
	return kern::check(ib_send_cm_sidr_rep(cm_id_, &rep));
}

kern::Result<> IbConnection::reject(const void *data, u8 length, u8 reason)
{
	if (!datagrams())
		return kern::check(ib_send_cm_rej(cm_id_, static_cast<ib_cm_rej_reason>(reason),
						  nullptr, 0, data, length));
	if (!passive_)
		return kern::Error{-EINVAL};
	ib_cm_sidr_rep_param rep{};
	rep.status = IB_SIDR_REJECT;
	rep.private_data = data;
	rep.private_data_len = length;
	return kern::check(ib_send_cm_sidr_rep(cm_id_, &rep));
}

/*
 * Disconnects with a DREQ or a DREP, depending on the CM's state. If the connection has ended
 * already, or the ID is for datagrams, both fail and there is nothing to do.
 */
kern::Result<> IbConnection::disconnect()
{
	if (ib_send_cm_dreq(cm_id_, nullptr, 0) == -EINVAL)
		(void)ib_send_cm_drep(cm_id_, nullptr, 0);
	return {};
}

TransportEvent IbConnection::read_resolution(const ib_cm_event &event) const
{
	const auto &rep = event.param.sidr_rep_rcvd;
	TransportEvent report{Event::failed, RDMA_CM_EVENT_UNREACHABLE};
	report.param.ud.private_data = event.private_data;
	report.param.ud.private_data_len = event.private_data_len;
	if (rep.status != IB_SIDR_SUCCESS) {
		report.status = rep.status;
		return report;
	}
	if (rep.qkey != id_.qkey()) {
		report.type = RDMA_CM_EVENT_ADDR_ERROR;
		report.status = -EINVAL;
		return report;
	}
	sa_path_rec path = id_.route.path_rec;
	if (int error = ib_init_ah_attr_from_path(id_.device, id_.port_num, &path,
						  &report.param.ud.ah_attr)) {
		report.type = RDMA_CM_EVENT_ADDR_ERROR;
		report.status = error;
		return report;
	}
	report.event = Event::established;
	report.type = RDMA_CM_EVENT_ESTABLISHED;
	report.param.ud.qp_num = rep.qpn;
	report.param.ud.qkey = rep.qkey;
	return report;
}

/*
 * Handles an event of the CM. The return value is always 0, so the CM keeps its ID even if the
 * consumer's handler fails; the CM's ID is destroyed together with this ID.
 */
int IbConnection::on_event(ib_cm_id *cm_id, const ib_cm_event *event)
{
	auto &self = *static_cast<IbConnection *>(cm_id->context);
	TransportEvent report{Event::failed, RDMA_CM_EVENT_UNREACHABLE};
	switch (event->event) {
	case IB_CM_REQ_ERROR:
	case IB_CM_REP_ERROR:
	case IB_CM_SIDR_REQ_ERROR:
		report.status = -ETIMEDOUT;
		break;
	case IB_CM_REP_RECEIVED: {
		const auto &rep = event->param.rep_rcvd;
		/*
		 * Tell the peer that the consumer may take longer, so that it does not repeat the
		 * REP.
		 */
		(void)ib_send_cm_mra(cm_id, service_timeout | IB_CM_MRA_FLAG_DELAY, nullptr, 0);
		report = {Event::responded, RDMA_CM_EVENT_CONNECT_RESPONSE};
		report.param.conn.responder_resources = rep.responder_resources;
		report.param.conn.initiator_depth = rep.initiator_depth;
		report.param.conn.flow_control = rep.flow_control;
		report.param.conn.rnr_retry_count = rep.rnr_retry_count;
		report.param.conn.srq = rep.srq;
		report.param.conn.qp_num = rep.remote_qpn;
		break;
	}
	case IB_CM_RTU_RECEIVED:
	case IB_CM_USER_ESTABLISHED:
		report = {Event::established, RDMA_CM_EVENT_ESTABLISHED};
		break;
	case IB_CM_DREQ_ERROR:
	case IB_CM_DREQ_RECEIVED:
	case IB_CM_DREP_RECEIVED:
		report = {Event::disconnected, RDMA_CM_EVENT_DISCONNECTED};
		report.status = event->event == IB_CM_DREQ_ERROR ? -ETIMEDOUT : 0;
		break;
	case IB_CM_TIMEWAIT_EXIT:
		report = {Event::timewait_exit, RDMA_CM_EVENT_TIMEWAIT_EXIT};
		break;
	case IB_CM_REJ_RECEIVED:
		report.type = RDMA_CM_EVENT_REJECTED;
		report.status = event->param.rej_rcvd.reason;
		break;
	case IB_CM_SIDR_REP_RECEIVED:
		self.id_.handle(self.read_resolution(*event));
		return 0;
	default:
		/*
		 * Other events, such as an MRA, do not concern the ID. Manager::remove() reports
		 * the removal of the device.
		 */
		return 0;
	}
	if (self.datagrams()) {
		report.param.ud.private_data = event->private_data;
		report.param.ud.private_data_len = event->private_data_len;
	} else {
		report.param.conn.private_data = event->private_data;
		report.param.conn.private_data_len = event->private_data_len;
	}
	self.id_.handle(report);
	return 0;
}

class IbRequest final : public Request
{
public:
	IbRequest(ib_cm_id &cm_id, const ib_cm_event &event) : cm_id_(cm_id)
	{
		device = cm_id.device;
		private_data = event.private_data;
		private_data_len = event.private_data_len;
		if (event.event == IB_CM_SIDR_REQ_RECEIVED) {
			port_num = event.param.sidr_req_rcvd.port;
			pkey = event.param.sidr_req_rcvd.pkey;
			qp_type = IB_QPT_UD;
			/* A SIDR_REQ contains no GID, so use the port's first one. */
			(void)rdma_query_gid(device, port_num, 0, &sgid);
			return;
		}
		const auto &req = event.param.req_rcvd;
		port_num = req.port;
		path = req.primary_path;
		pkey = path->pkey.value();
		sgid = path->sgid;
		qp_type = req.qp_type;
		conn.responder_resources = req.responder_resources;
		conn.initiator_depth = req.initiator_depth;
		conn.flow_control = req.flow_control;
		conn.retry_count = req.retry_count;
		conn.rnr_retry_count = req.rnr_retry_count;
		conn.srq = req.srq;
		conn.qp_num = req.remote_qpn;
	}
	kern::Result<kern::Owned<Connection>> take(Id &id) override
	{
		auto made = KERN_TRY(IbConnection::create_passive(id, cm_id_));
		connection_ = made.get();
		made->take_over();
		return kern::Owned<Connection>(std::move(made));
	}
	void kept() override
	{
		if (qp_type != IB_QPT_UD)
			(void)ib_send_cm_mra(&cm_id_, service_timeout | IB_CM_MRA_FLAG_DELAY,
					     nullptr, 0);
	}
	void not_accepted() override
	{
		if (connection_)
			connection_->detach();
	}

private:
	ib_cm_id &cm_id_;
	IbConnection *connection_ = nullptr;
};

class IbListening final : public Listening
{
public:
	static kern::Result<kern::Owned<Listening>> create(ib_device &device, Service &service)
	{
		auto made = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) IbListening(service)));
		made->cm_id_ = KERN_TRY(rdma::check(ib_create_cm_id(&device, on_event, &service)));
		return kern::Owned<Listening>(std::move(made));
	}
	~IbListening() override
	{
		if (cm_id_)
			ib_destroy_cm_id(cm_id_);
	}
	kern::Result<> begin(unsigned int backlog) override
	{
		KERN_TRY_ERRNO(
			ib_cm_listen(cm_id_, service_of(service_.space, service_.port), u64{0}));
		set_backlog(backlog);
		return {};
	}
	void set_backlog(unsigned int backlog) override
	{
		(void)ib_cm_set_backlog(cm_id_, backlog);
	}
	void stop() override { ib_end_cm_id(cm_id_); }

private:
	explicit IbListening(const Service &service) : service_(service) {}
	static int on_event(ib_cm_id *cm_id, const ib_cm_event *event)
	{
		if (event->event != IB_CM_REQ_RECEIVED && event->event != IB_CM_SIDR_REQ_RECEIVED)
			return 0;
		IbRequest request(*cm_id, *event);
		return take_request(*static_cast<Service *>(cm_id->context), request);
	}

	const Service &service_; /* its Listener holds a reference */
	ib_cm_id *cm_id_ = nullptr;
};

} // namespace

kern::Result<kern::Owned<Connection>> IbTransport::create_connection(Id &id)
{
	return IbConnection::create(id);
}

kern::Result<kern::Owned<Listening>> IbTransport::create_listening(ib_device &device,
								   Service &service)
{
	return IbListening::create(device, service);
}

kern::Result<> IbTransport::idle_attributes(const Id &id, ib_qp_attr &attr, int &mask)
{
	mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;
	attr.port_num = id.port_num;
	KERN_TRY_ERRNO(
		ib_find_cached_pkey(id.device, id.port_num, id.route.addr.pkey, &attr.pkey_index));
	if (id.qp_type != IB_QPT_UD) {
		attr.qp_access_flags = 0;
		mask |= IB_QP_ACCESS_FLAGS;
	}
	return {};
}

} // namespace rdma_cm
