// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the midlayer with devices whose transport is iWARP (RNICs): which of the driver's methods
// the midlayer calls, and which operations it permits.
#include <rdma/driver.hpp>
#include "fixture.hpp"
#include "observer.hpp"
#include "../../../hw/soft/rnic.h"

using namespace fixture;

namespace
{

class Rnic
{
public:
	Rnic()
	{
		const soft_options options = {};
		device_ = soft_create_rnic(&options);
	}
	~Rnic()
	{
		if (ok())
			soft_destroy(device_);
	}
	Rnic(const Rnic &) = delete;
	Rnic &operator=(const Rnic &) = delete;

	bool ok() const { return !rdma::is_err(device_); }
	ib_device *get() const { return device_; }
	operator ib_device *() const { return device_; }

private:
	ib_device *device_;
};

/*
 * An RNIC registers without GIDs and P_Keys and reports its type. It has no attributes of a subnet.
 */
void iwarp_device_registers_without_gids_and_pkeys(Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	EXPECT_EQ(device.get()->node_type, RDMA_NODE_RNIC);
	EXPECT_TRUE(rdma_protocol_iwarp(device, 1) && rdma_cap_iw_cm(device, 1));
	EXPECT_FALSE(rdma_protocol_ib(device, 1) || rdma_cap_ib_mad(device, 1) ||
		     rdma_cap_ib_cm(device, 1) || rdma_cap_ib_sa(device, 1) ||
		     rdma_cap_ib_smi(device, 1));
	EXPECT_EQ(rdma_max_mad_size(device, 1), size_t{0});
	EXPECT_EQ(rdma_port_get_link_layer(device, 1), IB_LINK_LAYER_ETHERNET);

	ib_port_attr port;
	EXPECT_EQ(ib_query_port(device, 1, &port), 0);
	EXPECT_EQ(port.state, IB_PORT_ACTIVE);
	ib_gid gid = {};
	u16 pkey, index;
	u32 port_num;
	EXPECT_EQ(rdma_query_gid(device, 1, 0, &gid), -EINVAL);
	EXPECT_EQ(ib_query_pkey(device, 1, 0, &pkey), -EINVAL);
	EXPECT_EQ(ib_get_cached_pkey(device, 1, 0, &pkey), -EINVAL);
	EXPECT_EQ(ib_find_gid(device, &gid, &port_num, &index), -ENOENT);
	EXPECT_EQ(ib_find_pkey(device, 1, IB_DEFAULT_PKEY_FULL, &index), -ENOENT);
	/* The port is queried again after an event, like any other port. */
	rdma::dispatch(IB_EVENT_PORT_ACTIVE, device, 1);
	EXPECT_TRUE(eventually([&] {
		ib_port_cache cached;
		return ib_get_cached_port(device, 1, &cached) == 0 && cached.generation == 1;
	}));
}

/*
 * Creating an address handle on an RNIC fails without calling the driver, which has no such
 * methods.
 */
void iwarp_device_rejects_address_handles(Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	rdma_ah_attr attr = {};
	attr.port_num = 1;
	rdma_ah_set_dlid(&attr, 1);
	EXPECT_EQ(rdma::AddressHandle::create(pd.value(), attr).error(), -EOPNOTSUPP);
}

/* An RNIC supports only RC QPs. */
void iwarp_supports_only_rc_queue_pairs(Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_TRUE(pd.ok() && cq.ok());
	for (int type = IB_QPT_SMI; type <= IB_QPT_XRC_TGT + 1; type++) {
		auto init = qp_attr(static_cast<ib_qp_type>(type));
		auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), init);
		EXPECT_EQ(qp.error(), type == IB_QPT_RC ? 0 : -EINVAL);
	}
	EXPECT_EQ(soft_calls(device, SOFT_CREATE_QP), 1ul);
}

/* Takes a QP to a state through the states before it, even with a driver that cannot connect. */
int lead_to(ib_qp *qp, ib_qp_state state)
{
	constexpr ib_qp_state ways[][4] = {
		{IB_QPS_RESET, IB_QPS_RESET, IB_QPS_RESET, IB_QPS_RESET},
		{IB_QPS_INIT, IB_QPS_INIT, IB_QPS_INIT, IB_QPS_INIT},
		{IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RESET, IB_QPS_RESET},
		{IB_QPS_INIT, IB_QPS_RTS, IB_QPS_RTS, IB_QPS_RTS},
		{IB_QPS_INIT, IB_QPS_RTS, IB_QPS_SQD, IB_QPS_SQD},
		{IB_QPS_INIT, IB_QPS_RTS, IB_QPS_SQE, IB_QPS_SQE},
		{IB_QPS_ERR, IB_QPS_ERR, IB_QPS_ERR, IB_QPS_ERR},
	};
	ib_qp_attr attr = {};

	for (ib_qp_state next : ways[state]) {
		attr.qp_state = next;
		if (int error = ib_modify_qp(qp, &attr, IB_QP_STATE))
			return error;
		if (next == state)
			return 0;
	}
	return 0;
}

struct StreamedPair {
	explicit StreamedPair(ib_device *device, bool joined = true)
	{
		auto init = qp_attr(IB_QPT_RC);
		auto made = rdma::Pd::create(device);
		auto queue_a = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
		auto queue_b = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
		if (!made.ok() || !queue_a.ok() || !queue_b.ok())
			return;
		pd = made.take();
		cq_a = queue_a.take();
		cq_b = queue_b.take();
		auto a = rdma::QueuePair::create(pd, cq_a, cq_a, init);
		auto b = rdma::QueuePair::create(pd, cq_b, cq_b, init);
		if (!a.ok() || !b.ok())
			return;
		qp_a = a.take();
		qp_b = b.take();
		ok = !joined || soft_stream(qp_a.get(), qp_b.get()) == 0;
	}
	int connect() const
	{
		ib_qp_attr attr = {};
		for (const auto *qp : {&qp_a, &qp_b}) {
			attr.qp_state = IB_QPS_INIT;
			attr.qp_access_flags = all_access & ~IB_ACCESS_REMOTE_ATOMIC;
			if (int error = ib_modify_qp(qp->get(), &attr,
						     IB_QP_STATE | IB_QP_ACCESS_FLAGS))
				return error;
			attr.qp_state = IB_QPS_RTS;
			attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
			if (int error = ib_modify_qp(qp->get(), &attr,
						     IB_QP_STATE | IB_QP_MAX_QP_RD_ATOMIC |
							     IB_QP_MAX_DEST_RD_ATOMIC))
				return error;
		}
		return 0;
	}

	bool ok = false;
	PdRef pd;
	CqRef cq_a, cq_b;
	rdma::QueuePair qp_a, qp_b;
};

/* Each pair of states: exactly the transitions that the RDMA verbs for iWARP permit. */
void iwarp_qp_transitions_match_the_rdma_verbs_specification(Test &test)
{
	constexpr int state_count = IB_QPS_ERR + 1;
	/* Rows: from; columns: to. */
	constexpr const char *table[state_count] = {
		"ooxxxxo" /* RESET */,        "ooooxxo" /* INIT */,
		"oxxoxxo" /* RTR */,          "xxxoooo" /* RTS: Closing, Terminate */,
		"oxxxoxo" /* SQD: Closing */, "xxxxxxo" /* SQE: Terminate */,
		"oxxxxxo" /* ERR */,
	};
	Rnic device;
	ASSERT_TRUE(device.ok());
	for (int from = 0; from < state_count; from++) {
		for (int to = 0; to < state_count; to++) {
			StreamedPair pair(device);
			ASSERT_TRUE(pair.ok);
			ib_qp *qp = pair.qp_a.get();
			ASSERT_EQ(lead_to(qp, static_cast<ib_qp_state>(from)), 0);
			const unsigned long asked = soft_calls(device, SOFT_MODIFY_QP);
			ib_qp_attr attr = {};
			attr.qp_state = static_cast<ib_qp_state>(to);
			const bool allowed = table[from][to] == 'o';
			const int error = ib_modify_qp(qp, &attr, IB_QP_STATE);
			/*
			 * Whether a QP whose connection is closed can be connected again depends on
			 * the driver.
			 */
			EXPECT_EQ(soft_calls(device, SOFT_MODIFY_QP) - asked, allowed ? 1ul : 0ul);
			if ((error == -EINVAL) == allowed)
				kern_kunit_note(test.native(), "%d to %d: %d", from, to, error);
			EXPECT_EQ(error == -EINVAL, !allowed);
		}
	}
}

/*
 * Attributes that have a meaning only in a subnet (addresses, keys, sequence numbers) are refused
 * before the driver is called.
 */
void iwarp_qp_rejects_infiniband_attributes(Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	StreamedPair pair(device);
	ASSERT_TRUE(pair.ok);
	constexpr int allowed =
		IB_QP_ACCESS_FLAGS | IB_QP_PORT | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC;
	ib_qp *qp = pair.qp_a.get();
	for (int bit = 1; bit <= IB_QP_DEST_QPN; bit <<= 1) {
		if (bit == IB_QP_STATE || bit == IB_QP_CUR_STATE)
			continue;
		ib_qp_attr attr = {};
		attr.qp_state = IB_QPS_INIT;
		attr.port_num = 1;
		EXPECT_EQ(ib_modify_qp(qp, &attr, IB_QP_STATE | bit), allowed & bit ? 0 : -EINVAL);
	}
}

/*
 * A QP without a stream is not connected. Messages use the stream, and its end is an error for both
 * sides.
 */
void iwarp_qp_cannot_enter_rts_without_a_stream_and_stream_close_flushes_requests_of_the_peer(
	Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	StreamedPair pair(device, false);
	ASSERT_TRUE(pair.ok);
	EXPECT_EQ(pair.connect(), -ENOTCONN);
	ASSERT_EQ(soft_stream(pair.qp_a.get(), pair.qp_b.get()), 0);
	EXPECT_EQ(soft_stream(pair.qp_a.get(), pair.qp_b.get()), -EISCONN);
	ASSERT_EQ(pair.connect(), 0);
	Memory memory(pair.pd);
	ASSERT_TRUE(memory.ok);

	ib_sge from = sge_of(pair.pd, memory.at(0), 100),
	       to = sge_of(pair.pd, memory.at(1000), 100);
	__builtin_memset(memory.at(0), 0x5a, 100);
	ib_recv_wr recv = {};
	recv.wr_id = 7;
	recv.sg_list = &to;
	recv.num_sge = 1;
	ASSERT_EQ(pair.qp_b.post_recv(&recv), 0);
	ib_send_wr send = send_wr(&from, IB_WR_SEND, 8);
	ASSERT_EQ(pair.qp_a.post_send(&send), 0);
	ib_wc wc;
	ASSERT_TRUE(next(pair.cq_b, wc));
	EXPECT_EQ(wc.wr_id, u64{7});
	EXPECT_EQ(wc.byte_len, 100u);
	EXPECT_EQ(memory.at(1000)[99], 0x5a);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);

	ib_rdma_wr write = {};
	write.wr = send_wr(&from, IB_WR_RDMA_WRITE, 9);
	write.remote_addr = memory.address(2000);
	write.rkey = memory.region->rkey;
	ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(memory.at(2000)[99], 0x5a);

	/* This protocol has neither immediate data nor atomics (RFC 5040, 1.1). */
	write.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	EXPECT_EQ(pair.qp_a.post_send(&write.wr), -EINVAL);
	ib_atomic_wr atomic = {};
	atomic.wr = send_wr(&from, IB_WR_ATOMIC_FETCH_AND_ADD, 10);
	EXPECT_EQ(pair.qp_a.post_send(&atomic.wr), -EINVAL);

	/* One end closes the stream, and the requests that the other has posted are flushed. */
	ASSERT_EQ(pair.qp_b.post_recv(&recv), 0);
	ib_qp_attr attr = {};
	attr.qp_state = IB_QPS_SQD;
	ASSERT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE), 0);
	ASSERT_TRUE(next(pair.cq_b, wc));
	EXPECT_EQ(wc.wr_id, u64{7});
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
}

/* A message without a posted receive terminates the stream, because iWARP has no RNR retry. */
void iwarp_send_without_a_posted_receive_terminates_the_stream(Test &test)
{
	Rnic device;
	ASSERT_TRUE(device.ok());
	StreamedPair pair(device);
	ASSERT_TRUE(pair.ok);
	ASSERT_EQ(pair.connect(), 0);
	Memory memory(pair.pd);
	ASSERT_TRUE(memory.ok);
	ib_sge from = sge_of(pair.pd, memory.at(0), 1);
	ib_send_wr first = send_wr(&from, IB_WR_SEND, 1), second = send_wr(&from, IB_WR_SEND, 2);
	first.next = &second;
	ASSERT_EQ(pair.qp_a.post_send(&first), 0);
	ib_wc wc;
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.wr_id, u64{1});
	EXPECT_EQ(wc.status, IB_WC_REM_OP_ERR);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.wr_id, u64{2});
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
}

/* A driver that does nothing, and has all methods that both protocols require. */
constexpr ib_device_ops least_ops = {
	.post_send = [](ib_qp *, const ib_send_wr *, const ib_send_wr **) { return -ENOMEM; },
	.post_recv = [](ib_qp *, const ib_recv_wr *, const ib_recv_wr **) { return -ENOMEM; },
	.poll_cq = [](ib_cq *, int, ib_wc *) { return 0; },
	.req_notify_cq = [](ib_cq *, ib_cq_notify_flags) { return 0; },
	.query_port = [](ib_device *, u32, ib_port_attr *) { return 0; },
	.alloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.dealloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.create_cq = [](ib_cq *, const ib_cq_init_attr *, ib_udata *) { return 0; },
	.destroy_cq = [](ib_cq *, ib_udata *) { return 0; },
	.create_qp = [](ib_qp *, ib_qp_init_attr *, ib_udata *) { return 0; },
	.modify_qp = [](ib_qp *, ib_qp_attr *, int, ib_udata *) { return 0; },
	.destroy_qp = [](ib_qp *, ib_udata *) { return 0; },
	.get_dma_mr = [](ib_mr *, int) { return 0; },
	.dereg_mr = [](ib_mr *, ib_udata *) { return 0; },
	.size_ib_cq = sizeof(ib_cq),
	.size_ib_mr = sizeof(ib_mr),
	.size_ib_pd = sizeof(ib_pd),
	.size_ib_qp = sizeof(ib_qp),
};

int registered_with(u8 node_type, bool tables,
		    int (*immutable)(ib_device *, u32, ib_port_immutable *))
{
	ib_device *device = _ib_alloc_device(sizeof(ib_device));

	if (!device)
		return -ENOMEM;
	ib_set_device_ops(device, &least_ops);
	if (tables) {
		device->ops.query_gid = [](ib_device *, u32, int, ib_gid *) { return 0; };
		device->ops.query_pkey = [](ib_device *, u32, u16, u16 *) { return 0; };
	}
	device->ops.get_port_immutable = immutable;
	device->num_comp_vectors = device->phys_port_cnt = 1;
	device->node_type = node_type;
	const int error = ib_register_device(device, "claims%d", nullptr);
	if (!error)
		ib_unregister_device(device);
	ib_dealloc_device(device);
	return error;
}

/*
 * A port may support only the protocol of its device's node type. It must have the tables that the
 * protocol requires, with the methods that read them.
 */
void device_with_a_port_protocol_that_does_not_match_its_node_type_is_refused(Test &test)
{
	struct Claim {
		u8 node_type;
		int error;
		bool tables;
		int (*immutable)(ib_device *, u32, ib_port_immutable *);
	};
#define CLAIM(type, outcome, can_read, pkeys, gids, flags)                                         \
	{type, outcome, can_read, [](ib_device *, u32, ib_port_immutable *immutable) {             \
		 *immutable = {pkeys, gids, flags, 0};                                             \
		 return 0;                                                                         \
	 }}
	static constexpr Claim claims[] = {
		CLAIM(RDMA_NODE_RNIC, 0, false, 0, 0, RDMA_CORE_PORT_IWARP),
		CLAIM(RDMA_NODE_RNIC, 0, true, 1, 1, RDMA_CORE_CAP_PROT_IWARP),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 0, 0, RDMA_CORE_PORT_IBA_IB),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, true, 1, 1, RDMA_CORE_CAP_PROT_IB),
		CLAIM(RDMA_NODE_IB_CA, -EINVAL, true, 1, 1, RDMA_CORE_CAP_PROT_IWARP),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 0, 0,
		      RDMA_CORE_PORT_IWARP | RDMA_CORE_CAP_PROT_IB),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 0, 0, RDMA_CORE_CAP_IW_CM),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 0, 0, RDMA_CORE_CAP_PROT_ROCE),
		/*
		 * The tables have no method that reads them, or are too long, or have a negative
		 * length.
		 */
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 1, 0, RDMA_CORE_PORT_IWARP),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, false, 0, 1, RDMA_CORE_PORT_IWARP),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, true, -1, 0, RDMA_CORE_PORT_IWARP),
		CLAIM(RDMA_NODE_RNIC, -EINVAL, true, 0, 0x10000, RDMA_CORE_PORT_IWARP),
		/*
		 * InfiniBand requires tables. MADs are left out, because this driver could not send
		 * them.
		 */
		CLAIM(RDMA_NODE_IB_CA, 0, true, 1, 1, RDMA_CORE_CAP_PROT_IB),
		CLAIM(RDMA_NODE_IB_CA, -EINVAL, true, 0, 1, RDMA_CORE_CAP_PROT_IB),
		CLAIM(RDMA_NODE_IB_CA, -EINVAL, true, 1, 0, RDMA_CORE_CAP_PROT_IB),
		CLAIM(RDMA_NODE_IB_CA, -EINVAL, true, 1, 1, RDMA_CORE_CAP_PROT_ROCE),
		CLAIM(RDMA_NODE_IB_CA, -EINVAL, false, 1, 1, RDMA_CORE_CAP_PROT_IB),
	};
#undef CLAIM
	/* Receives the reports about the devices that are refused. */
	Observer observer;
	for (const Claim &claim : claims) {
		const int error = registered_with(claim.node_type, claim.tables, claim.immutable);
		EXPECT_EQ(error, claim.error);
		if (error != claim.error)
			kern_kunit_note(test.native(), "claim %u",
					static_cast<unsigned int>(&claim - claims));
	}
	/* Without the method, ports have the plain protocol of the device's type. */
	EXPECT_EQ(registered_with(RDMA_NODE_RNIC, false, nullptr), 0);
}

} // namespace

SOFT_SUITES(
	weft_verbs_protocol, KUNIT_CASE(iwarp_device_registers_without_gids_and_pkeys),
	KUNIT_CASE(iwarp_device_rejects_address_handles),
	KUNIT_CASE(iwarp_supports_only_rc_queue_pairs),
	KUNIT_CASE(iwarp_qp_transitions_match_the_rdma_verbs_specification),
	KUNIT_CASE(iwarp_qp_rejects_infiniband_attributes),
	KUNIT_CASE(
		iwarp_qp_cannot_enter_rts_without_a_stream_and_stream_close_flushes_requests_of_the_peer),
	KUNIT_CASE(iwarp_send_without_a_posted_receive_terminates_the_stream),
	KUNIT_CASE(device_with_a_port_protocol_that_does_not_match_its_node_type_is_refused));
