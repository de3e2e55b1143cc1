// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "agent.hpp"
#include <rdma/objects.hpp>
#include "file.hpp"

namespace umad
{

namespace
{

/* Class versions must be lower than this. */
constexpr u8 class_version_max = 0x83;

bool is_vendor_range2(u8 mgmt_class)
{
	return mgmt_class >= IB_MGMT_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= IB_MGMT_CLASS_VENDOR_RANGE2_END;
}

/* Checks that the midlayer leaves to its consumers. */
kern::Result<> check_request(const Registration &what)
{
	const ib_mad_reg_req &request = what.request;
	const u8 mgmt_class = request.mgmt_class;
	const bool smp = mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
			 mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;

	if (smp != (what.qpn == 0) || (!smp && mgmt_class > IB_MGMT_CLASS_VENDOR_RANGE2_END))
		return kern::Error{-EINVAL};
	if (request.mgmt_class_version >= class_version_max)
		return kern::Error{-EINVAL};
	if (is_vendor_range2(mgmt_class) && !(request.oui[0] | request.oui[1] | request.oui[2]))
		return kern::Error{-EINVAL};
	if (what.rmpp_version && !ib_is_mad_class_rmpp(mgmt_class))
		return kern::Error{-EINVAL};
	return {};
}

} // namespace

kern::Result<kern::Owned<Agent>> Agent::create(File &file, ib_device &device, u32 port, u32 id,
					       Registration what)
{
	ib_mad_reg_req *request = what.request.mgmt_class ? &what.request : nullptr;

	if (what.qpn > 1)
		return kern::Error{-EINVAL};
	if (request)
		KERN_TRY(check_request(what));
	auto agent = KERN_TRY(kern::adopt(new (kern::Gfp::kernel_account) Agent(file, id)));
	agent->mad_ = KERN_TRY(rdma::check(ib_register_mad_agent(
		&device, port, what.qpn ? IB_QPT_GSI : IB_QPT_SMI, request, what.rmpp_version,
		on_sent, on_received, agent.get(), what.flags)));
	return agent;
}

Agent::~Agent()
{
	ending_.store_release(true);
	if (mad_)
		ib_unregister_mad_agent(mad_);
}

void Agent::on_sent(ib_mad_agent *mad, ib_mad_send_wc *how)
{
	const Agent &agent = *static_cast<Agent *>(mad->context);
	agent.file_.on_sent(*static_cast<Send *>(how->send_buf->context[0]),
			    how->status != IB_WC_SUCCESS && !agent.ending_.load_acquire());
}

void Agent::on_received(ib_mad_agent *mad, ib_mad_send_buf *asked, ib_mad_recv_wc *received)
{
	const Agent &agent = *static_cast<Agent *>(mad->context);
	agent.file_.on_received(agent, *mad,
				asked ? static_cast<Send *>(asked->context[0]) : nullptr, received);
}

} // namespace umad
