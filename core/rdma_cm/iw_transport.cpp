// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Maps IDs of the RDMA CM to IDs of the iWARP connection manager. */
#include "iw_transport.hpp"

#include <rdma/ib_cache.h>
#include <rdma/ib_resources.h>
#include <rdma/iw_cm.h>
#include <rdma/objects.hpp>

#include "manager.hpp"

namespace rdma_cm
{
namespace
{

iw_cm_address to_iw(const Address &address)
{
	const kern_ip_address ip = to_ip(address);
	iw_cm_address made{};
	made.v6 = ip.v6;
	made.port = port_of(address);
	__builtin_memcpy(made.bytes, ip.bytes, sizeof(made.bytes));
	return made;
}

Address from_iw(const iw_cm_address &address)
{
	Address made = any_of(address.v6 ? RDMA_AF_INET6 : RDMA_AF_INET);
	kern_ip_address ip{};
	ip.v6 = address.v6;
	__builtin_memcpy(ip.bytes, address.bytes, sizeof(ip.bytes));
	set_host(made, ip);
	set_port(made, RDMA_PS_TCP, address.port);
	return made;
}

void name_access(ib_qp_attr &attr, int &mask)
{
	mask = IB_QP_STATE;
	if (attr.qp_state != IB_QPS_INIT && attr.qp_state != IB_QPS_RTR)
		return;
	attr.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	mask |= IB_QP_ACCESS_FLAGS;
}

/*
 * The QP of a connection: the ID's own QP, or the consumer's QP with this number. The consumer's QP
 * is held, so that it cannot be destroyed meanwhile. A program may only specify its own QPs.
 */
class UsedQp
{
public:
	UsedQp(const Id &id, u32 number)
	    : held_(id.qp ? nullptr : ib_hold_qp(id.device, number, id.creator->process)),
	      qp_(id.qp ? id.qp : held_)
	{
	}
	~UsedQp() { ib_release_qp(held_); }
	UsedQp(const UsedQp &) = delete;
	UsedQp &operator=(const UsedQp &) = delete;

	ib_qp *get() const { return qp_; }

private:
	ib_qp *const held_;
	ib_qp *const qp_;
};

class IwConnection final : public Connection
{
public:
	static kern::Result<kern::Owned<Connection>> create(Id &id)
	{
		if (id.qp_type != IB_QPT_RC)
			return kern::Error{-EINVAL};
		auto made =
			KERN_TRY(kern::adopt(new (kern::Gfp::kernel) IwConnection(id, nullptr)));
		made->iw_id_ =
			KERN_TRY(rdma::check(iw_create_cm_id(id.device, on_event, made.get())));
		return kern::Owned<Connection>(std::move(made));
	}
	/*
	 * Creates the connection for a request. @iw_id is the ID that the connection manager has
	 * created for it. Called in the handler of that ID.
	 */
	static kern::Result<kern::Owned<IwConnection>> create_passive(Id &id, iw_cm_id &iw_id)
	{
		return kern::adopt(new (kern::Gfp::kernel) IwConnection(id, &iw_id));
	}
	~IwConnection() override
	{
		if (iw_id_)
			iw_destroy_cm_id(iw_id_);
	}
	void take_over()
	{
		iw_id_->context = this;
		iw_id_->cm_handler = on_event;
	}
	void detach() { iw_id_ = nullptr; }

	kern::Result<> connect(const rdma_conn_param &param) override
	{
		iw_id_->local = to_iw(id_.source());
		iw_id_->remote = to_iw(id_.destination());
		const UsedQp used(id_, param.qp_num);
		const iw_cm_param made = describe(param, used);
		return kern::check(iw_cm_connect(iw_id_, &made));
	}
	/* The active side has no message to send. */
	kern::Result<> accept(const rdma_conn_param *param) override
	{
		if (!passive_)
			return {};
		if (!param)
			return kern::Error{-EINVAL};
		const UsedQp used(id_, param->qp_num);
		const iw_cm_param made = describe(*param, used);
		return kern::check(iw_cm_accept(iw_id_, &made));
	}
	kern::Result<> reject(const void *data, u8 length, u8) override
	{
		const int refused = iw_cm_reject(iw_id_, data, length);
		return kern::check(refused == -EINVAL ? iw_cm_disconnect(iw_id_, true) : refused);
	}
	kern::Result<> disconnect() override
	{
		/* An error means that the connection has ended already. */
		(void)iw_cm_disconnect(iw_id_, false);
		return {};
	}
	kern::Result<> notify(ib_event_type) override { return {}; }
	kern::Result<> qp_attributes(ib_qp_attr &attr, int &mask) override
	{
		name_access(attr, mask);
		return {};
	}
	bool controls_qp() const override { return true; }

private:
	IwConnection(Id &id, iw_cm_id *iw_id) : id_(id), iw_id_(iw_id), passive_(iw_id != nullptr)
	{
	}
	static iw_cm_param describe(const rdma_conn_param &param, const UsedQp &used)
	{
		return {.qp = used.get(),
			.ord = param.initiator_depth,
			.ird = param.responder_resources,
			.private_data = param.private_data,
			.private_data_len = param.private_data_len};
	}
	static int on_event(iw_cm_id *iw_id, const iw_cm_event *event);

	Id &id_;
	iw_cm_id *iw_id_;
	const bool passive_;
};

int IwConnection::on_event(iw_cm_id *iw_id, const iw_cm_event *event)
{
	auto &self = *static_cast<IwConnection *>(iw_id->context);
	TransportEvent report{Event::failed, RDMA_CM_EVENT_CONNECT_ERROR, event->status};
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REPLY:
		if (event->status == 0)
			report = {Event::responded, RDMA_CM_EVENT_ESTABLISHED};
		else if (event->status == -ECONNREFUSED || event->status == -ECONNRESET)
			report.type = RDMA_CM_EVENT_REJECTED;
		else if (event->status == -ETIMEDOUT || event->status == -EHOSTUNREACH)
			report.type = RDMA_CM_EVENT_UNREACHABLE;
		break;
	case IW_CM_EVENT_ESTABLISHED:
		report = {Event::established, RDMA_CM_EVENT_ESTABLISHED};
		break;
	case IW_CM_EVENT_CLOSE:
		report = {Event::disconnected, RDMA_CM_EVENT_DISCONNECTED};
		break;
	default:
		return 0;
	}
	report.param.conn.private_data = event->private_data;
	report.param.conn.private_data_len = event->private_data_len;
	self.id_.handle(report);
	return 0;
}

class IwRequest final : public Request
{
public:
	IwRequest(iw_cm_id &iw_id, const iw_cm_event &event) : iw_id_(iw_id), event_(event)
	{
		const auto byte = [](int reads) {
			return static_cast<u8>(reads < 255 ? reads : 255);
		};
		device = iw_id.device;
		port_num = rdma_start_port(device);
		qp_type = IB_QPT_RC;
		private_data = event.private_data;
		private_data_len = event.private_data_len;
		(void)rdma_query_gid(device, port_num, 0, &sgid);
		/*
		 * The request does not contain these values, so report the device's limits. The
		 * card reports the actual values when the request is accepted.
		 */
		conn.responder_resources = byte(device->attrs.max_qp_rd_atom);
		conn.initiator_depth = byte(device->attrs.max_qp_init_rd_atom);
	}
	kern::Result<kern::Owned<Connection>> take(Id &id) override
	{
		auto made = KERN_TRY(IwConnection::create_passive(id, iw_id_));
		connection_ = made.get();
		made->take_over();
		return kern::Owned<Connection>(std::move(made));
	}
	/* The peer's TCP waits, so it needs no message. */
	void kept() override {}
	void not_accepted() override
	{
		if (connection_)
			connection_->detach();
	}
	kern::Result<Ends> arrive(const Service &, Resolver &resolver,
				  Interface &interface) override
	{
		Ends ends;
		ends.local = from_iw(event_.local);
		ends.peer = from_iw(event_.remote);
		ends.header = 0;
		KERN_TRY(check_ends(ends));
		interface = KERN_TRY(resolver.incoming_ethernet(sgid, ends.local));
		return ends;
	}

private:
	iw_cm_id &iw_id_;
	const iw_cm_event &event_;
	IwConnection *connection_ = nullptr;
};

class IwListening final : public Listening
{
public:
	static kern::Result<kern::Owned<Listening>> create(ib_device &device, Service &service)
	{
		auto made = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) IwListening));
		made->iw_id_ = KERN_TRY(rdma::check(iw_create_cm_id(&device, on_event, &service)));
		made->iw_id_->local.port = service.port;
		return kern::Owned<Listening>(std::move(made));
	}
	~IwListening() override
	{
		if (iw_id_)
			iw_destroy_cm_id(iw_id_);
	}
	kern::Result<> begin(unsigned int backlog) override
	{
		return kern::check(iw_cm_listen(iw_id_, backlog));
	}
	/* The card got the backlog when listening began and cannot change it. */
	void set_backlog(unsigned int) override {}
	void stop() override { iw_cm_stop_listening(iw_id_); }

private:
	IwListening() = default;
	static int on_event(iw_cm_id *iw_id, const iw_cm_event *event)
	{
		IwRequest request(*iw_id, *event);
		return take_request(*static_cast<Service *>(iw_id->context), request);
	}

	iw_cm_id *iw_id_ = nullptr;
};

} // namespace

kern::Result<kern::Owned<Connection>> IwTransport::create_connection(Id &id)
{
	return IwConnection::create(id);
}

kern::Result<kern::Owned<Listening>> IwTransport::create_listening(ib_device &device,
								   Service &service)
{
	return IwListening::create(device, service);
}

kern::Result<> IwTransport::idle_attributes(const Id &, ib_qp_attr &attr, int &mask)
{
	name_access(attr, mask);
	return {};
}

} // namespace rdma_cm
