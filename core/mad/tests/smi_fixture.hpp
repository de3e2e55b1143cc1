/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
// Provides directed-route requests, and nodes whose device or agent answers them, for tests.
#pragma once
#include <ib/smp.hpp>
#include "fixture.hpp"

namespace smi_fixture
{

using namespace mad_fixture;

[[gnu::noinline]] inline ib::Smp smp(u8 hop_ptr, u8 hop_cnt, bool returning = false)
{
	ib::Smp result{};
	result.header.hop_ptr = hop_ptr;
	result.header.hop_cnt = hop_cnt;
	result.header.status = static_cast<u16>(returning ? ib::mad_status_direction : 0);
	result.dr_slid = result.dr_dlid = ib::lid_permissive;
	for (unsigned int i = 1; i < ib::smp_path_max; i++)
		result.initial_path[i] = result.return_path[i] = 1;
	return result;
}

inline void turn_round(const ib_mad &question, ib_mad &answer)
{
	answer = question;
	answer.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (question.mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		answer.mad_hdr.status = static_cast<u16>(ib::mad_status_direction);
	answer.data[40] = 0x5a;
}

inline int answer_in_device(ib_device *, int, u32, const ib_wc *, const ib_grh *, const ib_mad *in,
			    ib_mad *out, size_t *, u16 *)
{
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	turn_round(*in, *out);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

struct Asked {
	kern::Atomic<unsigned int> answers{}, completions{};
	ib_wc_status status = IB_WC_GENERAL_ERR;
	u8 mark = 0;

	static void on_sent(ib_mad_agent *agent, ib_mad_send_wc *wc)
	{
		auto &self = *static_cast<Asked *>(agent->context);
		self.status = wc->status;
		self.completions.fetch_add(1);
	}
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		auto &self = *static_cast<Asked *>(agent->context);
		self.mark = wc->recv_buf.mad->data[40];
		self.answers.fetch_add(1);
		ib_free_recv_mad(wc);
	}
};

struct Route {
	u8 hops = 0;
	u8 ports[4] = {1, 1, 1,
		       1}; /* output ports of the requester and of each switch on the way */
	u16 by_lid = ib::lid_permissive;    /* LID to which the directed route continues */
	u16 begins_at = ib::lid_permissive; /* LID of the node where the directed route begins */
	u16 asker = ib::lid_permissive;     /* LID of the requester, for the response */
	u32 from_port = 1;                  /* port of the requester; 0 on a switch */
	ib_wc_status expected = IB_WC_SUCCESS;
	u8 method = IB_MGMT_METHOD_GET;
	u16 attribute = 0;
};

/* Sends a request along a directed route, and expects one response or none. */
inline void ask(Test &test, ib_device *device, const Route &route)
{
	Asked asked;
	auto *agent = ib_register_mad_agent(device, route.from_port, IB_QPT_SMI, nullptr, 0,
					    Asked::on_sent, Asked::on_received, &asked, 0);
	ASSERT_FALSE(rdma::is_err(agent));
	ib_pd *pd = ib_alloc_pd(device, 0);
	rdma_ah_attr attr{};
	attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&attr, route.begins_at);
	rdma_ah_set_port_num(&attr, route.from_port);
	ib_ah *ah = rdma_create_ah(pd, &attr, 0);
	auto *send = ib_create_send_mad(agent, 0, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, gfp,
					IB_MGMT_BASE_VERSION);
	if (EXPECT_FALSE(rdma::is_err(pd) || rdma::is_err(ah) || rdma::is_err(send))) {
		auto &packet = *static_cast<ib::Smp *>(send->mad);
		packet = smp(0, route.hops);
		for (unsigned int i = 0; i < 4; i++)
			packet.initial_path[i + 1] = route.ports[i];
		packet.dr_dlid = route.by_lid;
		packet.dr_slid = route.asker;
		packet.header.base_version = IB_MGMT_BASE_VERSION;
		packet.header.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
		packet.header.class_version = 1;
		packet.header.method = route.method;
		packet.header.attr_id = route.attribute;
		packet.header.tid = u64{agent->hi_tid} << 32 | 1;
		send->ah = ah;
		send->timeout_ms = route.expected == IB_WC_SUCCESS ? 5000 : 100;
		EXPECT_EQ(ib_post_send_mad(send, nullptr), 0);
		EXPECT_TRUE(eventually([&] { return asked.completions.load_acquire() != 0; }));
		EXPECT_EQ(asked.status, route.expected);
		EXPECT_EQ(asked.answers.load_acquire(), route.expected == IB_WC_SUCCESS ? 1u : 0u);
		EXPECT_EQ(asked.mark, route.expected == IB_WC_SUCCESS ? 0x5a : 0);
	}
	ib_unregister_mad_agent(agent);
	EXPECT_EQ(asked.completions.load_acquire(), 1u);
	ib_free_send_mad(send);
	rdma_destroy_ah(ah, 0);
	ib_dealloc_pd(pd);
}

/* An agent of weft answers if the device has none. */
struct Manager {
	u32 port_num;
	ib_pd *pd;
	ib_mad_agent *agent;

	explicit Manager(ib_device *device, u32 port = 1)
	    : port_num(port), pd(ib_alloc_pd(device, 0))
	{
		ib_mad_reg_req request{};
		request.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
		request.mgmt_class_version = 1;
		request.method_mask[0] = 1ul << IB_MGMT_METHOD_GET;
		agent = ib_register_mad_agent(device, port, IB_QPT_SMI, &request, 0, on_sent,
					      on_received, this, 0);
	}
	~Manager()
	{
		ib_unregister_mad_agent(agent);
		ib_dealloc_pd(pd);
	}
	static void on_sent(ib_mad_agent *, ib_mad_send_wc *wc)
	{
		rdma_destroy_ah(wc->send_buf->ah, 0);
		ib_free_send_mad(wc->send_buf);
	}
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *wc)
	{
		auto &self = *static_cast<Manager *>(agent->context);
		auto *send = ib_create_send_mad(agent, wc->wc->src_qp, 0, 0, IB_MGMT_MAD_HDR,
						IB_MGMT_MAD_DATA, gfp, IB_MGMT_BASE_VERSION);
		turn_round(*wc->recv_buf.mad, *static_cast<ib_mad *>(send->mad));
		send->ah = ib_create_ah_from_wc(self.pd, wc->wc, wc->recv_buf.grh, self.port_num);
		if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
		}
		ib_free_recv_mad(wc);
	}
};

} // namespace smi_fixture
