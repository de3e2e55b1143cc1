// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the functions of rdma/ib_mad.h, by which consumers register agents and send MADs. */
#include "device.hpp"

#include "links.hpp"

using mad::Agent;
using mad::Receive;
using mad::Send;
using mad::SpecialQp;

namespace
{

constexpr u8 registration_flags_known = IB_MAD_USER_RMPP;

bool is_smp_class(u8 mgmt_class)
{
	return mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
	       mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
}

kern::Result<SpecialQp *> find_qp(ib_device *device, u32 port_num, ib_qp_type qp_type)
{
	if (qp_type != IB_QPT_SMI && qp_type != IB_QPT_GSI)
		return kern::Error{-EINVAL};
	if (!rdma_is_port_valid(device, port_num))
		return kern::Error{-EINVAL};
	mad::Device *management = mad::Device::of(device);
	SpecialQp *qp = management ? management->qp(port_num, qp_type) : nullptr;
	if (!qp)
		return kern::Error{-ENODEV};
	return qp;
}

kern::Result<> check_request(const ib_mad_reg_req &request, ib_qp_type qp_type)
{
	if (request.mgmt_class == 0 || request.mgmt_class_version == 0)
		return kern::Error{-EINVAL};
	if (is_smp_class(request.mgmt_class) != (qp_type == IB_QPT_SMI))
		return kern::Error{-EPROTONOSUPPORT};
	return {};
}

kern::Result<ib_mad_agent *> add_agent(SpecialQp &qp, kern::Owned<Agent> agent)
{
	KERN_TRY(qp.add(*agent));
	return static_cast<ib_mad_agent *>(agent.release());
}

ib_mad_agent *to_pointer(kern::Result<ib_mad_agent *> result)
{
	return result.ok() ? result.take() : rdma::err_ptr<ib_mad_agent>(result.error());
}

kern::Result<ib_mad_agent *> register_agent(ib_device *device, u32 port_num, ib_qp_type qp_type,
					    const ib_mad_reg_req *request, u8 rmpp_version,
					    ib_mad_send_handler send_handler,
					    ib_mad_recv_handler recv_handler, void *context,
					    u32 flags)
{
	SpecialQp *qp = KERN_TRY(find_qp(device, port_num, qp_type));
	if ((rmpp_version != 0 && rmpp_version != IB_MGMT_RMPP_VERSION) ||
	    (flags & ~registration_flags_known) || (!send_handler && !recv_handler) ||
	    (request && !recv_handler))
		return kern::Error{-EINVAL};
	if (request)
		KERN_TRY(check_request(*request, qp_type));

	auto agent = KERN_TRY(kern::make<Agent>(kern::Gfp::kernel, *qp, request));
	agent->rmpp_version = rmpp_version;
	agent->send_handler = send_handler;
	agent->recv_handler = recv_handler;
	agent->context = context;
	agent->flags = flags;
	return add_agent(*qp, std::move(agent));
}

kern::Result<ib_mad_agent *> register_snoop(ib_device *device, u32 port_num, ib_qp_type qp_type,
					    int flags, ib_mad_snoop_handler snoop_handler,
					    ib_mad_recv_handler recv_handler, void *context)
{
	SpecialQp *qp = KERN_TRY(find_qp(device, port_num, qp_type));
	const bool sends = flags & IB_MAD_SNOOP_SEND_COMPLETIONS;
	const bool receives = flags & IB_MAD_SNOOP_RECVS;
	if ((flags & ~(IB_MAD_SNOOP_SEND_COMPLETIONS | IB_MAD_SNOOP_RECVS)) ||
	    !(sends || receives) || (sends && !snoop_handler) || (receives && !recv_handler))
		return kern::Error{-EINVAL};

	auto agent = KERN_TRY(kern::make<Agent>(kern::Gfp::kernel, *qp, nullptr));
	agent->snoops = true;
	agent->snoop_handler = sends ? snoop_handler : nullptr;
	agent->recv_handler = receives ? recv_handler : nullptr;
	agent->context = context;
	return add_agent(*qp, std::move(agent));
}

kern::Result<> check_send(const Send &send)
{
	const Agent &agent = send.agent();
	if (send.timeout_ms < 0 || send.retries < 0 || agent.snoops || !agent.send_handler)
		return kern::Error{-EINVAL};
	if (send.timeout_ms > 0 && !agent.recv_handler)
		return kern::Error{-EINVAL};
	const auto &header = send.header();
	/*
	 * Only a directed-route SMP may be sent without an address: if its path has no hops, this
	 * node handles it.
	 */
	if (!send.ah && header.mgmt_class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		return kern::Error{-EINVAL};
	if (is_smp_class(header.mgmt_class) != (agent.special_qp().type() == IB_QPT_SMI))
		return kern::Error{-EINVAL};
	return {};
}

} // namespace

extern "C" {

int ib_query_mad_counters(ib_device *device, u32 port_num, ib_qp_type qp_type,
			  ib_mad_counters *counters)
{
	auto qp = find_qp(device, port_num, qp_type);
	if (qp.ok())
		*counters = qp.value()->counters();
	return qp.error();
}

ib_mad_agent *ib_register_mad_agent(ib_device *device, u32 port_num, ib_qp_type qp_type,
				    ib_mad_reg_req *mad_reg_req, u8 rmpp_version,
				    ib_mad_send_handler send_handler,
				    ib_mad_recv_handler recv_handler, void *context,
				    u32 registration_flags)
{
	KERN_MIGHT_SLEEP();
	return to_pointer(register_agent(device, port_num, qp_type, mad_reg_req, rmpp_version,
					 send_handler, recv_handler, context, registration_flags));
}

ib_mad_agent *ib_register_mad_snoop(ib_device *device, u32 port_num, ib_qp_type qp_type,
				    int mad_snoop_flags, ib_mad_snoop_handler snoop_handler,
				    ib_mad_recv_handler recv_handler, void *context)
{
	KERN_MIGHT_SLEEP();
	return to_pointer(register_snoop(device, port_num, qp_type, mad_snoop_flags, snoop_handler,
					 recv_handler, context));
}

void ib_unregister_mad_agent(ib_mad_agent *mad_agent)
{
	KERN_MIGHT_SLEEP();
	auto agent = kern::Owned<Agent>::adopt(static_cast<Agent *>(mad_agent));
	agent->special_qp().remove(*agent);
}

ib_mad_send_buf *ib_create_send_mad(ib_mad_agent *mad_agent, u32 remote_qpn, u16 pkey_index,
				    int rmpp_active, int hdr_len, int data_len, unsigned int gfp,
				    u8 base_version)
{
	auto &agent = *static_cast<Agent *>(mad_agent);
	if (base_version != IB_MGMT_BASE_VERSION || (rmpp_active && agent.rmpp_version == 0))
		return rdma::err_ptr<ib_mad_send_buf>(-EINVAL);
	auto send = Send::create(agent, remote_qpn, pkey_index, rmpp_active && agent.does_rmpp(),
				 hdr_len, data_len, static_cast<kern::Gfp>(gfp));
	return send.ok() ? send.take().release() : rdma::err_ptr<ib_mad_send_buf>(send.error());
}

void ib_free_send_mad(ib_mad_send_buf *send_buf)
{
	kern::destroy(static_cast<Send *>(send_buf));
}

int ib_post_send_mad(ib_mad_send_buf *send_buf, ib_mad_send_buf **bad_send_buf)
{
	while (send_buf) {
		/* The send handler may free send_buf before post() returns. */
		ib_mad_send_buf *next = send_buf->next;
		auto &send = *static_cast<Send *>(send_buf);
		auto status = check_send(send);
		if (status.ok())
			status = send.agent().special_qp().post(send);
		if (!status.ok()) {
			if (bad_send_buf)
				*bad_send_buf = send_buf;
			return status.error();
		}
		send_buf = next;
	}
	return 0;
}

int ib_modify_mad(ib_mad_send_buf *send_buf, u32 timeout_ms)
{
	auto &send = *static_cast<Send *>(send_buf);
	return send.agent().special_qp().modify(send, timeout_ms).error();
}

void ib_free_recv_mad(ib_mad_recv_wc *mad_recv_wc)
{
	auto *receive = static_cast<Receive *>(mad_recv_wc);
	ib_list_head *head = &receive->rmpp_list;
	for (ib_list_head *link = head->next; link != head;) {
		Receive *segment = Receive::of_link(link);
		link = link->next;
		if (segment != receive)
			kern::destroy(segment);
	}
	kern::destroy(receive);
}

void *ib_get_rmpp_segment(ib_mad_send_buf *send_buf, int seg_num)
{
	auto &send = *static_cast<Send *>(send_buf);
	const auto segment = static_cast<std::uint32_t>(seg_num);
	if (seg_num < 1 || segment > send.packet_count())
		return nullptr;
	return send.packet(segment).bytes + send.hdr_len;
}

int ib_response_mad(const ib_mad_hdr *hdr)
{
	return reinterpret_cast<const ib::MadHeader *>(hdr)->is_response() ||
	       (hdr->mgmt_class == IB_MGMT_CLASS_BM && (hdr->attr_mod.value() & 1));
}

int ib_is_mad_class_rmpp(u8 mgmt_class)
{
	switch (mgmt_class) {
	case IB_MGMT_CLASS_SUBN_ADM:
	case IB_MGMT_CLASS_DEVICE_ADM:
	case IB_MGMT_CLASS_BIS:
		return 1;
	default:
		return mgmt_class >= IB_MGMT_CLASS_VENDOR_RANGE2_START &&
		       mgmt_class <= IB_MGMT_CLASS_VENDOR_RANGE2_END;
	}
}

int ib_get_mad_data_offset(u8 mgmt_class)
{
	switch (mgmt_class) {
	case IB_MGMT_CLASS_SUBN_ADM:
		return IB_MGMT_SA_HDR;
	case IB_MGMT_CLASS_DEVICE_MGMT:
	case IB_MGMT_CLASS_DEVICE_ADM:
	case IB_MGMT_CLASS_BIS:
		return IB_MGMT_DEVICE_HDR;
	default:
		return ib_is_mad_class_rmpp(mgmt_class) ? IB_MGMT_VENDOR_HDR : IB_MGMT_MAD_HDR;
	}
}

int ib_mad_kernel_rmpp_agent(const ib_mad_agent *agent)
{
	return agent->rmpp_version != 0 && !(agent->flags & IB_MAD_USER_RMPP);
}

} // extern "C"
