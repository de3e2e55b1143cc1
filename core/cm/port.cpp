// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port.hpp"

#include "device.hpp"

namespace cm
{

Address::Address(rdma::AddressHandle &&ah, const rdma_ah_attr &where, u32 number, u16 index,
		 const ib_gid &port)
    : attr(where), qpn(number), pkey_index(index), gid(port), ah_(std::move(ah))
{
}

kern::Result<kern::Ref<Address>> Address::create(kern::Ref<rdma::Pd> pd, const rdma_ah_attr &attr,
						 u32 qpn, u16 pkey_index, const ib_gid &gid)
{
	rdma_ah_attr where = attr;
	auto ah = KERN_TRY(rdma::AddressHandle::create(std::move(pd), where));
	return kern::adopt_ref(new (kern::Gfp::kernel)
				       Address(std::move(ah), where, qpn, pkey_index, gid));
}

kern::Result<kern::Owned<Port>> Port::create(Device &device, u32 number)
{
	ib_mad_reg_req request{};
	request.mgmt_class = IB_MGMT_CLASS_CM;
	request.mgmt_class_version = ib::cm_class_version;
	request.method_mask[0] = 1ul << IB_MGMT_METHOD_SEND;

	auto port = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Port(device, number)));
	port->agent_ = KERN_TRY(
		rdma::check(ib_register_mad_agent(&device.ib(), number, IB_QPT_GSI, &request, 0,
						  on_sent, on_received, port.get(), 0)));
	port->set_served_flag(true);
	return port;
}

Port::~Port()
{
	if (!agent_)
		return;
	set_served_flag(false);
	ib_unregister_mad_agent(agent_);
}

/*
 * Sets or clears IsCommunicationManagementSupported in PortInfo (IBA 14.2.5.6). A port that does
 * not support the bit is served nevertheless.
 */
void Port::set_served_flag(bool served)
{
	ib_port_modify change{};
	(served ? change.set_port_cap_mask : change.clr_port_cap_mask) = IB_PORT_CM_SUP;
	(void)ib_modify_port(&device_.ib(), number_, 0, &change);
}

kern::Result<> Port::send(const ib::Mad &mad, const kern::Ref<Address> &to, Cause cause, bool again)
{
	auto &in_flight = this->in_flight(cause);
	if (cause != Cause::own &&
	    in_flight.load_relaxed() >= (cause == Cause::asked ? asked_max : own_max)) {
		counters.no_room++;
		return kern::Error{-ENOBUFS};
	}
	auto *send = KERN_TRY(rdma::check(ib_create_send_mad(
		agent_, to->qpn, to->pkey_index, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
		static_cast<unsigned>(kern::Gfp::kernel), IB_MGMT_BASE_VERSION)));
	__builtin_memcpy(send->mad, &mad, sizeof(mad));
	send->ah = to->ah();
	/* on_sent() drops this reference. */
	send->context[0] = kern::Ref<Address>(to).release();
	send->context[1] = &in_flight;
	in_flight.fetch_add(1);
	if (const int status = ib_post_send_mad(send, nullptr)) {
		in_flight.fetch_sub(1);
		(void)kern::Ref<Address>::adopt(static_cast<Address *>(send->context[0]));
		ib_free_send_mad(send);
		return kern::Error{status};
	}
	counters.sent[counter_of(mad)]++;
	if (again)
		counters.retries[counter_of(mad)]++;
	return {};
}

void Port::on_sent(ib_mad_agent *, ib_mad_send_wc *how)
{
	ib_mad_send_buf *send = how->send_buf;
	const auto to = kern::Ref<Address>::adopt(static_cast<Address *>(send->context[0]));
	static_cast<kern::Atomic<int> *>(send->context[1])->fetch_sub(1);
	ib_free_send_mad(send);
}

void Port::on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *received)
{
	auto &port = *static_cast<Port *>(agent->context);
	port.device_.receive(port, Received(received));
}

} // namespace cm
