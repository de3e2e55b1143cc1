// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Directed routes (IBA 14.2.2), and MGMT-04: nodes whose device answers SMPs, and nodes where an agent of ours does.
#include "../smi.hpp"
#include "fixture.hpp"

using namespace mad_fixture;
using ib::SmiAction;
using ib::SmiDecision;
using mgmt::smi_inbound;
using mgmt::smi_outbound;

namespace
{

SmiDecision through_switch(ib::Smp &packet, u8 in_port)
{
	return ib::smi_receive(packet, true, in_port, 8);
}

[[gnu::noinline]] ib::Smp smp(u8 hop_ptr, u8 hop_cnt, bool returning = false)
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

/* There and back over one switch: the hop pointer and the return path after each step. */
void mgmt_04_directed_route_there_and_back(Test &test)
{
	ib::Smp packet = smp(0, 2);
	packet.initial_path[2] = 5;
	EXPECT_EQ(smi_outbound(packet, 1).action, SmiAction::forward);
	EXPECT_EQ(packet.header.hop_ptr, 1);
	const auto through = through_switch(packet, 3);
	EXPECT_EQ(through.action, SmiAction::forward);
	EXPECT_EQ(through.port, 5);
	EXPECT_EQ(packet.return_path[1], 3);
	EXPECT_EQ(smi_inbound(packet, 1).action, SmiAction::local);
	EXPECT_EQ(packet.header.hop_ptr, 3);

	packet.header.status = ib::mad_status_direction;
	EXPECT_EQ(smi_outbound(packet, 1).action, SmiAction::forward);
	EXPECT_EQ(packet.header.hop_ptr, 2);
	const auto back = through_switch(packet, 5);
	EXPECT_EQ(back.action, SmiAction::forward);
	EXPECT_EQ(back.port, 3);
	EXPECT_EQ(smi_inbound(packet, 1).action, SmiAction::local);
	EXPECT_EQ(packet.header.hop_ptr, 0);
}

enum class At : u8 { adapter, fabric_switch };

[[gnu::noinline]] SmiAction in(At node, u8 hop_ptr, u8 hop_cnt, bool returning = false, u8 second_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[2] = second_port;
	return (node == At::adapter ? smi_inbound(packet, 1) : through_switch(packet, 1)).action;
}

[[gnu::noinline]] SmiAction out(u8 hop_ptr, u8 hop_cnt, bool returning = false, u8 first_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[1] = first_port;
	return smi_outbound(packet, 1).action;
}

void mgmt_04_directed_route_violations(Test &test)
{
	EXPECT_EQ(in(At::fabric_switch, 1, 2), SmiAction::forward);
	EXPECT_EQ(in(At::fabric_switch, 1, 64), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 4, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 0, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 1, 2, false, 9), SmiAction::discard);
	EXPECT_EQ(in(At::adapter, 1, 2), SmiAction::discard);
	/* Behind its end a path goes on by LID, and so arrives (C14-9 step 4); a way back begins so too (C14-13). */
	EXPECT_EQ(in(At::adapter, 3, 2), SmiAction::local);
	EXPECT_EQ(in(At::fabric_switch, 3, 2, true), SmiAction::forward);
	EXPECT_EQ(in(At::adapter, 3, 2, true), SmiAction::discard);
	EXPECT_EQ(in(At::adapter, 2, 2, true), SmiAction::discard);
	EXPECT_EQ(out(0, 1), SmiAction::forward);
	EXPECT_EQ(out(0, 0), SmiAction::local);
	EXPECT_EQ(out(1, 2), SmiAction::discard);
	EXPECT_EQ(out(1, 2, true), SmiAction::discard);
	EXPECT_EQ(out(0, 255), SmiAction::discard);
	EXPECT_EQ(out(0, 1, false, 2), SmiAction::discard);
}

void turn_round(const ib_mad &question, ib_mad &answer)
{
	answer = question;
	answer.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (question.mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		answer.mad_hdr.status = static_cast<u16>(ib::mad_status_direction);
	answer.data[40] = 0x5a;
}

int answer_in_device(ib_device *, int, u32, const ib_wc *, const ib_grh *, const ib_mad *in, ib_mad *out, size_t *, u16 *)
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

/* Asks along a directed route of so many hops from a device. */
void ask(Test &test, ib_device *device, u8 hops, ib_wc_status expected)
{
	Asked asked;
	auto *agent = ib_register_mad_agent(device, 1, IB_QPT_SMI, nullptr, 0, Asked::on_sent, Asked::on_received, &asked, 0);
	ASSERT_FALSE(rdma::is_err(agent));
	ib_pd *pd = ib_alloc_pd(device, 0);
	rdma_ah_attr attr{};
	attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&attr, IB_LID_PERMISSIVE_HOST);
	rdma_ah_set_port_num(&attr, 1);
	ib_ah *ah = rdma_create_ah(pd, &attr, 0);
	auto *send = ib_create_send_mad(agent, 0, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, gfp, IB_MGMT_BASE_VERSION);
	if (EXPECT_FALSE(rdma::is_err(pd) || rdma::is_err(ah) || rdma::is_err(send))) {
		auto &packet = *static_cast<ib::Smp *>(send->mad);
		packet = smp(0, hops);
		packet.header.base_version = IB_MGMT_BASE_VERSION;
		packet.header.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
		packet.header.class_version = 1;
		packet.header.method = IB_MGMT_METHOD_GET;
		packet.header.tid = u64{agent->hi_tid} << 32 | 1;
		send->ah = ah;
		send->timeout_ms = 100;
		EXPECT_EQ(ib_post_send_mad(send, nullptr), 0);
		EXPECT_TRUE(eventually([&] { return asked.completions.load_acquire() != 0; }));
		EXPECT_EQ(asked.status, expected);
		EXPECT_EQ(asked.answers.load_acquire(), expected == IB_WC_SUCCESS ? 1u : 0u);
		EXPECT_EQ(asked.mark, expected == IB_WC_SUCCESS ? 0x5a : 0);
	}
	ib_unregister_mad_agent(agent);
	EXPECT_EQ(asked.completions.load_acquire(), 1u);
	ib_free_send_mad(send);
	rdma_destroy_ah(ah, 0);
	ib_dealloc_pd(pd);
}

/* The device answers: itself for itself, and over the wire. */
void mgmt_04_device_answers(Test &test)
{
	Device near({.lid = 1, .process_mad = answer_in_device}), far({.lid = 2, .process_mad = answer_in_device});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	ask(test, near, 0, IB_WC_SUCCESS);
	ask(test, near, 1, IB_WC_SUCCESS);
}

/* An agent of ours answers, where the device has none. */
struct Manager {
	ib_pd *pd;
	ib_mad_agent *agent;

	explicit Manager(ib_device *device) : pd(ib_alloc_pd(device, 0))
	{
		ib_mad_reg_req request{};
		request.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
		request.mgmt_class_version = 1;
		request.method_mask[0] = 1ul << IB_MGMT_METHOD_GET;
		agent = ib_register_mad_agent(device, 1, IB_QPT_SMI, &request, 0, on_sent, on_received, this, 0);
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
		auto *send = ib_create_send_mad(agent, wc->wc->src_qp, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, gfp,
						IB_MGMT_BASE_VERSION);
		turn_round(*wc->recv_buf.mad, *static_cast<ib_mad *>(send->mad));
		send->ah = ib_create_ah_from_wc(self.pd, wc->wc, wc->recv_buf.grh, 1);
		if (ib_post_send_mad(send, nullptr)) {
			rdma_destroy_ah(send->ah, 0);
			ib_free_send_mad(send);
		}
		ib_free_recv_mad(wc);
	}
};

void mgmt_04_agent_answers(Test &test)
{
	Device near({.lid = 1}), far({.lid = 2});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	Manager there(far);
	ASSERT_FALSE(rdma::is_err(there.agent));
	ask(test, near, 1, IB_WC_SUCCESS);
}

} // namespace

KUNIT_SUITE(mad_smi, KUNIT_CASE(mgmt_04_directed_route_there_and_back), KUNIT_CASE(mgmt_04_directed_route_violations),
	    KUNIT_CASE(mgmt_04_device_answers), KUNIT_CASE(mgmt_04_agent_answers));
