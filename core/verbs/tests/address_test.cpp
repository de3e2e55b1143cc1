// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests address vectors, and the addresses of datagrams and multicast groups.
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

/*
 * Takes a QP from any state to RTR with this path (address, MTU, peer), and returns the result of
 * the last transition.
 */
int ready_to_receive(Test &test, ib_qp *qp, const ib_qp_attr &path)
{
	ib_qp_attr attr = path;
	attr.qp_state = IB_QPS_RESET;
	EXPECT_EQ(ib_modify_qp(qp, &attr, IB_QP_STATE), 0);
	attr.qp_state = IB_QPS_INIT;
	attr.port_num = 1;
	EXPECT_EQ(ib_modify_qp(qp, &attr,
			       IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS),
		  0);
	attr.qp_state = IB_QPS_RTR;
	return ib_modify_qp(qp, &attr,
			    IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

/*
 * A connected QP sends to the address and QP that it was given, and starts with its own PSN in each
 * direction.
 */
void mgmt_06_connected_qp_uses_the_address_and_psns_of_its_attributes(Test &test)
{
	Device here({.lid = 1}), there({.lid = 2});
	ASSERT_TRUE(here.ok() && there.ok());
	Pair away(here), near(there);
	ASSERT_TRUE(away.ok && near.ok);
	/* Both QPs are connected again, to each other over the fabric. */
	ib_qp_attr attr = {};
	attr.qp_state = IB_QPS_RESET;
	ASSERT_EQ(ib_modify_qp(away.qp_a.get(), &attr, IB_QP_STATE), 0);
	ASSERT_EQ(ib_modify_qp(near.qp_a.get(), &attr, IB_QP_STATE), 0);
	ASSERT_EQ(connect(away.qp_a.get(), near.qp_a.number(), 2), 0);
	ASSERT_EQ(connect(near.qp_a.get(), away.qp_a.number(), 1), 0);
	ib_recv_wr recv = {};
	recv.wr_id = 9;
	ASSERT_EQ(near.qp_a.post_recv(&recv), 0);
	ASSERT_EQ(near.qp_b.post_recv(&recv), 0);
	ib_send_wr send = send_wr(nullptr, IB_WR_SEND);
	ASSERT_EQ(away.qp_a.post_send(&send), 0);
	ib_wc wc;
	ASSERT_TRUE(next(near.cq_a, wc));
	EXPECT_EQ(wc.wr_id, 9u);
	EXPECT_EQ(wc.qp, near.qp_a.get());
	EXPECT_EQ(near.cq_b->poll(1, &wc), 0);

	attr = {};
	ib_qp *qp = away.qp_b.get();
	attr.path_mtu = IB_MTU_256;
	attr.dest_qp_num = 0x1234;
	attr.rq_psn = 0xabcdef;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, 77);
	rdma_ah_set_sl(&attr.ah_attr, 5);
	ASSERT_EQ(ready_to_receive(test, qp, attr), 0);
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0x123456;
	ASSERT_EQ(ib_modify_qp(qp, &attr,
			       IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				       IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC),
		  0);
	ib_qp_attr is = {};
	ib_qp_init_attr init;
	ASSERT_EQ(ib_query_qp(qp, &is, IB_QP_AV | IB_QP_RQ_PSN | IB_QP_SQ_PSN, &init), 0);
	EXPECT_EQ(rdma_ah_get_dlid(&is.ah_attr), 77u);
	EXPECT_EQ(rdma_ah_get_sl(&is.ah_attr), 5);
	EXPECT_EQ(is.dest_qp_num, 0x1234u);
	EXPECT_EQ(is.rq_psn, 0xabcdefu);
	EXPECT_EQ(is.sq_psn, 0x123456u);
}

/*
 * A static rate is optional in an address; without one, the port's own rate applies. An address
 * handle, and a connected QP, keep the rate. An undefined rate is refused.
 */
void mgmt_05_ah_and_qp_keep_defined_static_rates_and_undefined_rates_are_refused(Test &test)
{
	Device device({.lid = 1});
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	rdma_ah_attr address = {.port_num = 1}, is = {};
	rdma_ah_set_dlid(&address, 1);
	for (ib_rate rate :
	     {IB_RATE_PORT_CURRENT, IB_RATE_2_5_GBPS, IB_RATE_10_GBPS, IB_RATE_120_GBPS}) {
		rdma_ah_set_static_rate(&address, static_cast<u8>(rate));
		auto ah = rdma::AddressHandle::create(pair.pd, address);
		ASSERT_OK(ah);
		EXPECT_EQ(rdma_query_ah(ah.value().get(), &is), 0);
		EXPECT_EQ(rdma_ah_get_static_rate(&is), rate);

		ib_qp *qp = pair.qp_a.get();
		ib_qp_attr attr = {.path_mtu = IB_MTU_1024, .ah_attr = address};
		ASSERT_EQ(ready_to_receive(test, qp, attr), 0);
		ib_qp_init_attr init;
		ASSERT_EQ(ib_query_qp(qp, &attr, IB_QP_AV, &init), 0);
		EXPECT_EQ(rdma_ah_get_static_rate(&attr.ah_attr), rate);
	}
	for (u8 rate : {u8{1}, u8{200}}) {
		rdma_ah_set_static_rate(&address, rate);
		EXPECT_EQ(rdma::AddressHandle::create(pair.pd, address).error(), -EINVAL);
	}
}

/* A path may have any of the five defined MTUs, and no other. */
void mgmt_11_only_defined_path_mtus_are_accepted(Test &test)
{
	Device device({.lid = 1});
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	ib_qp *qp = pair.qp_a.get();
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 1);
	for (int mtu = 0; mtu <= IB_MTU_4096 + 1; mtu++) {
		const bool exists = mtu >= IB_MTU_256 && mtu <= IB_MTU_4096;
		EXPECT_EQ(ready_to_receive(
				  test, qp,
				  {.path_mtu = static_cast<ib_mtu>(mtu), .ah_attr = address}),
			  exists ? 0 : -EINVAL);
		EXPECT_EQ(ib_mtu_enum_to_int(static_cast<ib_mtu>(mtu)), exists ? 128 << mtu : -1);
	}
	/* The MTU of the port is passed on unchanged. */
	ib_port_attr port;
	ASSERT_EQ(ib_query_port(device, 1, &port), 0);
	port.max_mtu = port.active_mtu = IB_MTU_256;
	soft_set_port(device, 1, &port);
	ib_event event = {
		.device = device, .element = {.port_num = 1}, .event = IB_EVENT_PORT_ACTIVE};
	ib_dispatch_event(&event);
	EXPECT_TRUE(eventually([&] {
		ib_port_cache cached;
		return ib_get_cached_port(device, 1, &cached) == 0 &&
		       cached.active_mtu == IB_MTU_256;
	}));
}

/*
 * MGMT-05, MGMT-07: a datagram carries its sender's address. The QP's own Q_Key is used if the
 * request has none.
 */
void mgmt_07_datagram_completion_reports_the_senders_address(Test &test)
{
	Device here({.lid = 1}), there({.lid = 2});
	ASSERT_TRUE(here.ok() && there.ok());
	struct End {
		PdRef pd;
		CqRef cq;
		rdma::QueuePair qp;
		bool create(ib_device *device)
		{
			auto p = rdma::Pd::create(device);
			auto c = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
			if (!p.ok() || !c.ok())
				return false;
			pd = p.take();
			cq = c.take();
			auto attr = qp_attr(IB_QPT_UD);
			auto q = rdma::QueuePair::create(pd, cq, cq, attr);
			if (!q.ok())
				return false;
			qp = q.take();
			return connect_datagram(qp.get(), 0x1234) == 0;
		}
	} a, b;
	ASSERT_TRUE(a.create(here) && b.create(there));
	Memory memory(b.pd);
	ASSERT_TRUE(memory.ok);
	for (u32 qkey : {0x1234u, IB_QP_SET_QKEY, 0x9999u}) {
		ib_sge to = sge_of(b.pd, memory.at(0), 256);
		ib_recv_wr recv = {};
		recv.sg_list = &to;
		recv.num_sge = 1;
		ASSERT_EQ(b.qp.post_recv(&recv), 0);
		rdma_ah_attr address = {.port_num = 1};
		address.sl = 3;
		rdma_ah_set_dlid(&address, 2);
		auto ah = rdma::AddressHandle::create(a.pd, address);
		ASSERT_OK(ah);
		__builtin_memcpy(memory.at(1000), "datagram", 8);
		ib_sge from = sge_of(a.pd, memory.at(1000), 8);
		ib_ud_wr wr = {.wr = send_wr(&from, IB_WR_SEND),
			       .ah = ah.value().get(),
			       .remote_qpn = b.qp.number(),
			       .remote_qkey = qkey};
		ASSERT_EQ(a.qp.post_send(&wr.wr), 0);
		ib_wc wc;
		ASSERT_TRUE(next(a.cq, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		if (qkey == 0x9999) {
			/* The wrong Q_Key: dropped in silence. */
			EXPECT_EQ(b.cq->poll(1, &wc), 0);
			continue;
		}
		ASSERT_TRUE(next(b.cq, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(wc.byte_len, 48u);
		EXPECT_EQ(wc.src_qp, a.qp.number());
		EXPECT_EQ(wc.slid, 1u);
		EXPECT_EQ(wc.sl, 3);
		EXPECT_EQ(wc.wc_flags & IB_WC_GRH, 0);
		EXPECT_EQ(__builtin_memcmp(memory.at(40), "datagram", 8), 0);
		/* The address for the response is the sender's. */
		rdma_ah_attr back;
		EXPECT_EQ(ib_init_ah_attr_from_wc(there, 1, &wc, nullptr, &back), 0);
		EXPECT_EQ(rdma_ah_get_dlid(&back), 1u);
		EXPECT_EQ(rdma_ah_get_sl(&back), 3);
	}
}

/*
 * The address of a response from a received GRH; an invalid header and a destination that is not
 * local are rejected.
 */
void ah_is_built_from_a_received_grh(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	ib_grh grh = {};
	ib_wc wc = {};
	rdma_ah_attr attr;
	wc.slid = 9;
	wc.wc_flags = IB_WC_GRH;
	ASSERT_EQ(rdma_query_gid(device, 1, 0, &grh.dgid), 0);
	grh.sgid.raw[15] = 7;
	grh.version_tclass_flow = 6u << 28 | 0x5au << 20 | 0x12345;
	grh.next_hdr = 0x1b;
	ASSERT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.ah_flags, IB_AH_GRH);
	EXPECT_EQ(attr.grh.flow_label, 0x12345u);
	EXPECT_EQ(attr.grh.traffic_class, 0x5a);
	EXPECT_EQ(attr.grh.dgid.raw[15], 7);
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 2, &wc, &grh, &attr), -EINVAL);
	ib_grh bad = grh;
	bad.version_tclass_flow = 4u << 28;
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, &bad, &attr), -EPROTO);
	bad = grh;
	bad.next_hdr = 17;
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, &bad, &attr), -EPROTO);
	bad = grh;
	bad.dgid.raw[15] ^= 0x55;
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, &bad, &attr), -ENOENT);
	/* A datagram sent to a group is answered from the first GID. */
	bad.dgid.raw[0] = 0xff;
	EXPECT_EQ(ib_init_ah_attr_from_wc(device, 1, &wc, &bad, &attr), 0);
	EXPECT_EQ(attr.grh.sgid_index, 0);
}

/* Datagrams to a group reach the QPs attached to it, and no others. */
void multicast_datagrams_reach_only_qps_attached_to_the_group(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
	ASSERT_TRUE(pd.ok() && cq.ok());
	auto attr = qp_attr(IB_QPT_UD);
	auto member = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
	auto outsider = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
	ASSERT_TRUE(member.ok() && outsider.ok());
	Memory memory(pd.value());
	ASSERT_TRUE(memory.ok);
	for (auto *qp : {&member.value(), &outsider.value()}) {
		ASSERT_EQ(connect_datagram(qp->get(), 1), 0);
		ib_sge to = sge_of(pd.value(), memory.at(0), 100);
		ib_recv_wr recv = {};
		recv.sg_list = &to;
		recv.num_sge = 1;
		ASSERT_EQ(qp->post_recv(&recv), 0);
	}
	const ib_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b}};
	ASSERT_EQ(ib_attach_mcast(member.value().get(), &group, 0xc005), 0);
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 0xc005);
	EXPECT_ERROR(rdma::AddressHandle::create(pd.value(), address), -EINVAL);
	rdma_ah_set_grh(&address, &group, 0, 0, 1, 0);
	auto ah = rdma::AddressHandle::create(pd.value(), address);
	ASSERT_OK(ah);
	ib_sge from = sge_of(pd.value(), memory.at(200), 10);
	ib_ud_wr wr = {.wr = send_wr(&from, IB_WR_SEND, 77),
		       .ah = ah.value().get(),
		       .remote_qpn = IB_MULTICAST_QPN,
		       .remote_qkey = 1};
	ASSERT_EQ(outsider.value().post_send(&wr.wr), 0);
	unsigned int received = 0;
	ib_wc wc;
	while (received < 2 && next(cq.value(), wc)) {
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		if (wc.opcode == IB_WC_RECV)
			EXPECT_EQ(wc.qp, member.value().get());
		received++;
	}
	EXPECT_EQ(received, 2u);
	EXPECT_EQ(cq.value()->poll(1, &wc), 0);
	EXPECT_EQ(ib_detach_mcast(member.value().get(), &group, 0xc005), 0);
}

} // namespace

SOFT_SUITES(verbs_address,
	    KUNIT_CASE(mgmt_06_connected_qp_uses_the_address_and_psns_of_its_attributes),
	    KUNIT_CASE(mgmt_05_ah_and_qp_keep_defined_static_rates_and_undefined_rates_are_refused),
	    KUNIT_CASE(mgmt_11_only_defined_path_mtus_are_accepted),
	    KUNIT_CASE(mgmt_07_datagram_completion_reports_the_senders_address),
	    KUNIT_CASE(ah_is_built_from_a_received_grh),
	    KUNIT_CASE(multicast_datagrams_reach_only_qps_attached_to_the_group));
