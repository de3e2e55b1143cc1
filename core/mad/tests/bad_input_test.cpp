// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-03 with invalid input: each invalid MAD of a peer and each invalid call of a
// consumer is rejected, answered, or dropped and counted.
#include "fixture.hpp"
#include "../../../hw/soft/rnic.h"

using namespace mad_fixture;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET;
constexpr u8 method_get_multi = 0x14;
/* Exceeds the depth of a special QP's receive queue. */
constexpr unsigned int more_than_a_queue = 600;

/* A malicious node, and a node with an agent of each kind. */
struct Scene {
	Node a{1}, b{2};
	Agent invalid_peer{a}, server{b}, rmpp_server{b};

	bool ok()
	{
		server.answering = true;
		return a.ok() && b.ok() && invalid_peer.open() == 0 &&
		       server.open(vendor_class, get) == 0 &&
		       rmpp_server.open(vendor_rmpp_class, 1ul << method_get_multi, 1,
					IB_MGMT_RMPP_VERSION) == 0;
	}
	/* Returns true if the attacked node still responds. */
	bool answers()
	{
		Sent sent(invalid_peer, 2, vendor_class, IB_MGMT_METHOD_GET, 100, 10);
		return sent.ok() && sent.post() == 0 && sent.ended() &&
		       sent.status() == IB_WC_SUCCESS;
	}
};

void begin(ib_mad_hdr &header, u8 mgmt_class, u8 method)
{
	header.base_version = IB_MGMT_BASE_VERSION;
	header.mgmt_class = mgmt_class;
	header.class_version = 1;
	header.method = method;
	header.tid = u64{0x77};
}

/*
 * MADs with a wrong length, another base version, or a class of the other interface are dropped and
 * counted, and the receive queue stays full.
 */
void mgmt_03_malformed_mads_are_dropped_and_counted(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2});
	ASSERT_OK(made);
	Raw &raw = *made.value();
	u64 malformed = 0;
	const auto is_dropped = [&](u32 length) {
		malformed++;
		return raw.send(length) &&
		       eventually([&] { return dropped(scene.b).malformed == malformed; });
	};
	begin(raw.mad().mad_hdr, vendor_class, IB_MGMT_METHOD_GET);
	for (u32 length : {1u, 24u, 255u, 257u, 2048u})
		ASSERT_TRUE(is_dropped(length));
	raw.mad().mad_hdr.base_version = 2;
	ASSERT_TRUE(is_dropped(IB_MGMT_MAD_SIZE));
	begin(raw.mad().mad_hdr, IB_MGMT_CLASS_SUBN_LID_ROUTED, IB_MGMT_METHOD_GET);
	ASSERT_TRUE(is_dropped(IB_MGMT_MAD_SIZE));
	EXPECT_EQ(scene.server.received.load_acquire(), 0u);

	for (unsigned int n = 0; n < more_than_a_queue; n++)
		ASSERT_TRUE(is_dropped(4096));
	EXPECT_TRUE(scene.answers());
}

/*
 * A Get or Set that no agent serves gets an error response. Other methods and unsolicited responses
 * get none.
 */
void mgmt_03_mad_that_no_agent_serves_gets_an_error_response_only_for_get_and_set(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	for (u8 method : {u8{IB_MGMT_METHOD_GET}, u8{IB_MGMT_METHOD_SET}}) {
		Sent sent(scene.invalid_peer, 2, 0x0a, method, 5000, 0);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
	}
	EXPECT_EQ(scene.invalid_peer.answers.load_acquire(), 2u);
	EXPECT_EQ(scene.invalid_peer.last_status, IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	Sent other(scene.invalid_peer, 2, 0x0a, IB_MGMT_METHOD_SEND, 20, 0);
	Sent response(scene.invalid_peer, 2, vendor_class, IB_MGMT_METHOD_GET_RESP, 0, 0);
	ASSERT_TRUE(other.ok() && response.ok());
	ASSERT_EQ(other.post(), 0);
	ASSERT_EQ(response.post(), 0);
	ASSERT_TRUE(other.ended() && response.ended());
	EXPECT_EQ(other.status(), IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).no_agent == 4; }));
	EXPECT_TRUE(scene.answers());
}

/*
 * Segments that violate the protocol are answered by ABORT with the reason. Segments and ACKs that
 * belong to no message are dropped.
 */
void mgmt_03_invalid_rmpp_segments_get_an_abort_and_stray_segments_are_dropped(Test &test)
{
	struct {
		u8 version, type, flags;
		u32 segment, length;
		u32 abort;
	} constexpr aborted[] = {
		{2, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST, 1, 0, IB_MGMT_RMPP_STATUS_UNV},
		{1, 9, IB_MGMT_RMPP_FLAG_FIRST, 1, 0, IB_MGMT_RMPP_STATUS_BADT},
		{1, IB_MGMT_RMPP_TYPE_DATA, 0, 1, 0, IB_MGMT_RMPP_STATUS_BAD_SEG},
		{1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST | IB_MGMT_RMPP_FLAG_LAST, 1,
		 221, IB_MGMT_RMPP_STATUS_BAD_LEN},
		{1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST | IB_MGMT_RMPP_FLAG_LAST, 1, 3,
		 IB_MGMT_RMPP_STATUS_BAD_LEN},
	};
	Scene scene;
	ASSERT_TRUE(scene.ok());
	auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2});
	ASSERT_OK(made);
	Raw &raw = *made.value();
	Spy spy(scene.b.device());
	const auto notify = [&](u64 tid, u8 version, u8 type, u8 flags, u32 segment, u32 length) {
		begin(raw.mad().mad_hdr, vendor_rmpp_class, method_get_multi);
		auto &rmpp = raw.mad().rmpp_hdr;
		raw.mad().mad_hdr.tid = tid;
		rmpp.rmpp_version = version;
		rmpp.rmpp_type = type;
		ib_set_rmpp_flags(&rmpp, flags | IB_MGMT_RMPP_FLAG_ACTIVE);
		rmpp.rmpp_status = 0;
		rmpp.seg_num = segment;
		rmpp.paylen_newwin = length;
		return raw.send(IB_MGMT_MAD_SIZE);
	};
	u64 tid = 1;
	for (const auto &bad : aborted) {
		spy.type.store_release(0);
		ASSERT_TRUE(
			notify(tid++, bad.version, bad.type, bad.flags, bad.segment, bad.length));
		EXPECT_TRUE(spy.aborted(bad.abort));
	}
	/* A message that ends with an incomplete segment is also aborted and dropped. */
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST, 1, 0));
	EXPECT_TRUE(eventually([&] { return spy.type.load_acquire() == IB_MGMT_RMPP_TYPE_ACK; }));
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_LAST, 2, 221));
	EXPECT_TRUE(spy.aborted(IB_MGMT_RMPP_STATUS_BAD_LEN));

	/* A message that its sender gives up is discarded, and not counted as an error. */
	const u64 before = dropped(scene.b).rmpp_discarded;
	spy.type.store_release(0);
	ASSERT_TRUE(notify(++tid, 1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST, 1, 0));
	EXPECT_TRUE(eventually([&] { return spy.type.load_acquire() == IB_MGMT_RMPP_TYPE_ACK; }));
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_ABORT, 0, 0, 0));
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_LAST, 2, 220));
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).rmpp_discarded == before + 1; }));
	EXPECT_EQ(scene.rmpp_server.received.load_acquire(), 0u);

	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_DATA, 0, 3, 0));
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_ACK, 0, 1, 64));
	ASSERT_TRUE(notify(tid, 1, IB_MGMT_RMPP_TYPE_STOP, 0, 0, 0));
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).rmpp_discarded == before + 4; }));

	/* Of RMPP messages that are never completed, only 64 are kept. */
	for (unsigned int n = 0; n < 64 + 10; n++)
		ASSERT_TRUE(
			notify(1000 + n, 1, IB_MGMT_RMPP_TYPE_DATA, IB_MGMT_RMPP_FLAG_FIRST, 1, 0));
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).rmpp_discarded == before + 14; }));
	EXPECT_EQ(scene.rmpp_server.received.load_acquire(), 0u);
	EXPECT_TRUE(scene.answers());
}

/* Registers an agent that receives unsolicited Sends of the vendor class and never responds. */
ib_mad_agent *take_sends(ib_device *device, ib_mad_recv_handler handler, void *context)
{
	ib_mad_reg_req request{};
	request.mgmt_class = vendor_class;
	request.mgmt_class_version = 1;
	request.method_mask[0] = 1ul << IB_MGMT_METHOD_SEND;
	return ib_register_mad_agent(device, 1, IB_QPT_GSI, &request, 0, nullptr, handler, context,
				     0);
}

/*
 * A flood to a slow consumer uses no more memory than a receive queue has, and the memory is freed
 * when the flood ends.
 */
void mgmt_03_flood_of_mads_uses_no_more_buffers_than_the_receive_queue_has(Test &test)
{
	struct Slow {
		kern::Completion gate;
		kern::Atomic<unsigned int> received{};
	} slow;
	Scene scene;
	ASSERT_TRUE(scene.ok());
	auto *agent = take_sends(
		scene.b.device(),
		[](ib_mad_agent *self, ib_mad_send_buf *, ib_mad_recv_wc *wc) {
			auto &to = *static_cast<Slow *>(self->context);
			to.gate.wait();
			to.received.fetch_add(1);
			ib_free_recv_mad(wc);
		},
		&slow);
	ASSERT_FALSE(rdma::is_err(agent));
	bool sent = true;
	if (auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2}); made.ok()) {
		begin(made.value()->mad().mad_hdr, vendor_class, IB_MGMT_METHOD_SEND);
		for (unsigned int n = 0; n < 2 * more_than_a_queue; n++)
			sent = made.value()->send(IB_MGMT_MAD_SIZE) && sent;
	}
	slow.gate.complete_all();
	EXPECT_TRUE(sent);
	EXPECT_TRUE(scene.answers());
	ib_unregister_mad_agent(agent);
	EXPECT_GT(slow.received.load_acquire(), 0u);
	EXPECT_LT(slow.received.load_acquire(), more_than_a_queue);
}

/*
 * MADs that wait for handlers do not occupy the receive queue: two bursts, each of nearly a queue,
 * while a handler is slow.
 */
void mgmt_12_mad_bursts_are_received_while_a_handler_is_blocked(Test &test)
{
	constexpr unsigned int burst = 500;
	struct Slow {
		kern::Completion gates[2];
		kern::Atomic<unsigned int> received{};
	} slow;
	Scene scene;
	ASSERT_TRUE(scene.ok());
	auto *agent = take_sends(
		scene.b.device(),
		[](ib_mad_agent *self, ib_mad_send_buf *, ib_mad_recv_wc *wc) {
			auto &to = *static_cast<Slow *>(self->context);
			if (const unsigned int before = to.received.fetch_add(1); before < 2)
				to.gates[before].wait();
			ib_free_recv_mad(wc);
		},
		&slow);
	ASSERT_FALSE(rdma::is_err(agent));
	bool sent = false;
	if (auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2}); made.ok()) {
		begin(made.value()->mad().mad_hdr, vendor_class, IB_MGMT_METHOD_SEND);
		sent = made.value()->send(IB_MGMT_MAD_SIZE);
		for (unsigned int n = 0; n < 2; n++) {
			/*
			 * Waits for the handler of the first MAD, or of the first one of a burst.
			 */
			sent = sent &&
			       eventually([&] { return slow.received.load_acquire() == n + 1; });
			for (unsigned int i = 0; i < burst; i++)
				sent = sent && made.value()->send(IB_MGMT_MAD_SIZE);
			slow.gates[n].complete_all();
		}
	}
	slow.gates[0].complete_all();
	slow.gates[1].complete_all();
	EXPECT_TRUE(sent);
	EXPECT_TRUE(eventually([&] { return slow.received.load_acquire() == 1 + 2 * burst; }));
	ib_unregister_mad_agent(agent);
}

/* Registrations with inconsistent arguments are rejected. */
void mgmt_03_invalid_agent_registrations_are_rejected(Test &test)
{
	Node node{1};
	ASSERT_TRUE(node.ok());
	const auto ignore_sent = [](ib_mad_agent *, ib_mad_send_wc *) {};
	const auto ignore_received = [](ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *wc) {
		ib_free_recv_mad(wc);
	};
	ib_mad_reg_req fits{};
	fits.mgmt_class = vendor_class;
	fits.mgmt_class_version = 1;
	fits.method_mask[0] = get;
	const auto refused = [&](u32 port, ib_qp_type type, ib_mad_reg_req *request,
				 u8 rmpp_version, ib_mad_send_handler on_sent,
				 ib_mad_recv_handler on_received, u32 flags) {
		return rdma::ptr_err(ib_register_mad_agent(node.device(), port, type, request,
							   rmpp_version, on_sent, on_received,
							   nullptr, flags));
	};
	EXPECT_EQ(refused(0, IB_QPT_GSI, &fits, 0, ignore_sent, ignore_received, 0), -EINVAL);
	EXPECT_EQ(refused(2, IB_QPT_GSI, &fits, 0, ignore_sent, ignore_received, 0), -EINVAL);
	EXPECT_EQ(refused(1, IB_QPT_UD, &fits, 0, ignore_sent, ignore_received, 0), -EINVAL);
	EXPECT_EQ(refused(1, IB_QPT_SMI, &fits, 0, ignore_sent, ignore_received, 0),
		  -EPROTONOSUPPORT);
	EXPECT_EQ(refused(1, IB_QPT_GSI, &fits, 2, ignore_sent, ignore_received, 0), -EINVAL);
	EXPECT_EQ(refused(1, IB_QPT_GSI, &fits, 0, ignore_sent, nullptr, 0), -EINVAL);
	EXPECT_EQ(refused(1, IB_QPT_GSI, nullptr, 0, nullptr, nullptr, 0), -EINVAL);
	EXPECT_EQ(refused(1, IB_QPT_GSI, &fits, 0, ignore_sent, ignore_received, 2), -EINVAL);
	ib_mad_reg_req bad = fits;
	bad.mgmt_class = 0;
	EXPECT_EQ(refused(1, IB_QPT_GSI, &bad, 0, ignore_sent, ignore_received, 0), -EINVAL);
	bad = fits;
	bad.mgmt_class_version = 0;
	EXPECT_EQ(refused(1, IB_QPT_GSI, &bad, 0, ignore_sent, ignore_received, 0), -EINVAL);
	bad = fits;
	bad.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	EXPECT_EQ(refused(1, IB_QPT_GSI, &bad, 0, ignore_sent, ignore_received, 0),
		  -EPROTONOSUPPORT);
	struct {
		u32 port;
		ib_qp_type type;
		int flags;
		ib_mad_recv_handler on_received;
	} const snoops[] = {{1, IB_QPT_GSI, 0, ignore_received},
			    {1, IB_QPT_GSI, IB_MAD_SNOOP_RECVS, nullptr},
			    {1, IB_QPT_GSI, IB_MAD_SNOOP_SEND_COMPLETIONS, ignore_received},
			    {1, IB_QPT_GSI, IB_MAD_SNOOP_RECVS | 1 << 9, ignore_received},
			    {2, IB_QPT_GSI, IB_MAD_SNOOP_RECVS, ignore_received},
			    {1, IB_QPT_RC, IB_MAD_SNOOP_RECVS, ignore_received}};
	for (const auto &row : snoops)
		EXPECT_EQ(rdma::ptr_err(ib_register_mad_snoop(node.device(), row.port, row.type,
							      row.flags, nullptr, row.on_received,
							      nullptr)),
			  -EINVAL);
	ib_mad_counters counters;
	EXPECT_EQ(ib_query_mad_counters(node.device(), 2, IB_QPT_GSI, &counters), -EINVAL);
	EXPECT_EQ(ib_query_mad_counters(node.device(), 1, IB_QPT_RC, &counters), -EINVAL);

	Agent agent{node};
	ASSERT_EQ(agent.open(), 0);
	const auto no_send = [&](int rmpp, int header, int data,
				 u8 version = IB_MGMT_BASE_VERSION) {
		return rdma::ptr_err(
			ib_create_send_mad(agent.agent, 1, 0, rmpp, header, data, gfp, version));
	};
	EXPECT_EQ(no_send(0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, 2), -EINVAL);
	EXPECT_EQ(no_send(0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA + 1), -EINVAL);
	EXPECT_EQ(no_send(0, IB_MGMT_MAD_HDR, -1), -EINVAL);
	EXPECT_EQ(no_send(0, IB_MGMT_MAD_HDR - 1, 10), -EINVAL);
	EXPECT_EQ(no_send(0, IB_MGMT_MAD_SIZE + 1, 0), -EINVAL);
	EXPECT_EQ(no_send(1, IB_MGMT_VENDOR_HDR, 10), -EINVAL);
}

/*
 * Sends that are inconsistent, or do not match their agent or class, are refused before anything is
 * sent, together with the rest of their list.
 */
void mgmt_03_invalid_send_and_all_later_sends_of_the_posted_list_are_rejected(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Agent rmpp{scene.a};
	ASSERT_EQ(rmpp.open(0, 0, 1, IB_MGMT_RMPP_VERSION), 0);
	const auto size = [&](int header, int data) {
		auto *send = ib_create_send_mad(rmpp.agent, 1, 0, 1, header, data, gfp,
						IB_MGMT_BASE_VERSION);
		if (rdma::is_err(send))
			return rdma::ptr_err(send);
		EXPECT_TRUE(ib_get_rmpp_segment(send, 0) == nullptr);
		EXPECT_TRUE(ib_get_rmpp_segment(send, 1) != nullptr);
		EXPECT_TRUE(ib_get_rmpp_segment(send, send->seg_count) != nullptr);
		EXPECT_TRUE(ib_get_rmpp_segment(send, send->seg_count + 1) == nullptr);
		ib_free_send_mad(send);
		return 0;
	};
	EXPECT_EQ(size(IB_MGMT_VENDOR_HDR, 1000), 0);
	EXPECT_EQ(size(IB_MGMT_RMPP_HDR - 1, 1000), -EINVAL);
	EXPECT_EQ(size(IB_MGMT_MAD_SIZE, 1000), -EINVAL);
	EXPECT_EQ(size(IB_MGMT_VENDOR_HDR, -1), -EINVAL);
	EXPECT_EQ(size(IB_MGMT_VENDOR_HDR, 0x7fffffff), -EINVAL);

	struct {
		u8 mgmt_class;
		int timeout_ms, retries;
	} constexpr wrong[] = {
		{vendor_class, -1, 0},
		{vendor_class, 10, -1},
		{vendor_class, 0, 1},
		{IB_MGMT_CLASS_SUBN_LID_ROUTED, 10, 0},
		{IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE, 10, 0},
	};
	for (const auto &row : wrong) {
		Sent sent(scene.invalid_peer, 2, row.mgmt_class, IB_MGMT_METHOD_GET, row.timeout_ms,
			  row.retries);
		ASSERT_TRUE(sent.ok());
		EXPECT_EQ(sent.post(), -EINVAL);
	}

	/* Without these handlers the completion or the response could not be delivered. */
	const auto ignore_received = [](ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *wc) {
		ib_free_recv_mad(wc);
	};
	auto *silent = ib_register_mad_agent(scene.a.device(), 1, IB_QPT_GSI, nullptr, 0, nullptr,
					     ignore_received, nullptr, 0);
	auto *deaf = ib_register_mad_agent(
		scene.a.device(), 1, IB_QPT_GSI, nullptr, 0,
		[](ib_mad_agent *, ib_mad_send_wc *) {}, nullptr, nullptr, 0);
	auto *snoop = ib_register_mad_snoop(
		scene.a.device(), 1, IB_QPT_GSI, IB_MAD_SNOOP_RECVS, nullptr,
		[](ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *) {}, nullptr);
	for (ib_mad_agent *agent : {silent, deaf, snoop}) {
		ASSERT_FALSE(rdma::is_err(agent));
		auto *send = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
						gfp, IB_MGMT_BASE_VERSION);
		ASSERT_FALSE(rdma::is_err(send));
		begin(static_cast<ib_mad *>(send->mad)->mad_hdr, vendor_class, IB_MGMT_METHOD_GET);
		send->ah = scene.a.address(2);
		send->timeout_ms = 10;
		EXPECT_EQ(ib_post_send_mad(send, nullptr), -EINVAL);
		rdma_destroy_ah(send->ah, 0);
		ib_free_send_mad(send);
		ib_unregister_mad_agent(agent);
	}

	/*
	 * The first MAD of the list is sent, the second is refused, and the third is not examined.
	 */
	Sent first(scene.invalid_peer, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	Sent second(scene.invalid_peer, 2, vendor_class, IB_MGMT_METHOD_GET, -1, 0);
	Sent third(scene.invalid_peer, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	ASSERT_TRUE(first.ok() && second.ok() && third.ok());
	first.buf()->next = second.buf();
	second.buf()->next = third.buf();
	EXPECT_EQ(first.post_list(second.buf()), -EINVAL);
	ASSERT_TRUE(first.ended());
	EXPECT_EQ(first.status(), IB_WC_SUCCESS);
	EXPECT_EQ(second.completions() + third.completions(), 0u);
	EXPECT_EQ(ib_modify_mad(third.buf(), 10), -EINVAL);
}

/* A MAD whose source LID is a multicast LID is not answered, and is counted. */
void mgmt_03_mads_from_a_multicast_lid_are_dropped(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	ib_port_attr port;
	ASSERT_EQ(ib_query_port(scene.a.device(), 1, &port), 0);
	const u32 lid = port.lid;
	auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2});
	ASSERT_OK(made);
	begin(made.value()->mad().mad_hdr, 0x0a, IB_MGMT_METHOD_GET);
	port.lid = 0xc123;
	soft_set_port(scene.a.device(), 1, &port);
	ASSERT_TRUE(made.value()->send(IB_MGMT_MAD_SIZE));
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).malformed == 1; }));
	port.lid = lid;
	soft_set_port(scene.a.device(), 1, &port);
	EXPECT_EQ(dropped(scene.b).no_memory, 0u);
	EXPECT_TRUE(scene.answers());
}

/* On a device without MADs, the MAD layer creates no resources. */
void mgmt_03_no_mad_resources_are_created_for_an_rnic(Test &test)
{
	const soft_options options = {};
	ib_device *rnic = soft_create_rnic(&options);
	ASSERT_FALSE(rdma::is_err(rnic));
	EXPECT_EQ(soft_calls(rnic, SOFT_ALLOC_PD), 0ul);
	ib_mad_counters counters;
	EXPECT_EQ(ib_query_mad_counters(rnic, 1, IB_QPT_GSI, &counters), -ENODEV);
	soft_destroy(rnic);
}

/* Ports that do not support MADs, or have no SMI, have no agents for them. */
void mgmt_03_agent_registration_fails_on_ports_without_mad_support(Test &test)
{
	Device without_mads({.lid = 3, .lacks = RDMA_CORE_CAP_IB_MAD}),
		without_smi({.lid = 4, .lacks = RDMA_CORE_CAP_IB_SMI});
	ASSERT_TRUE(without_mads.ok() && without_smi.ok());
	struct {
		ib_device *device;
		ib_qp_type type;
		int expected;
	} const rows[] = {{without_mads, IB_QPT_GSI, -ENODEV},
			  {without_mads, IB_QPT_SMI, -ENODEV},
			  {without_smi, IB_QPT_SMI, -ENODEV},
			  {without_smi, IB_QPT_GSI, 0}};
	for (const auto &row : rows) {
		ib_mad_counters counters;
		EXPECT_EQ(ib_query_mad_counters(row.device, 1, row.type, &counters), row.expected);
		auto *agent = ib_register_mad_agent(
			row.device, 1, row.type, nullptr, 0,
			[](ib_mad_agent *, ib_mad_send_wc *) {}, nullptr, nullptr, 0);
		auto *snoop = ib_register_mad_snoop(
			row.device, 1, row.type, IB_MAD_SNOOP_SEND_COMPLETIONS,
			[](ib_mad_agent *, ib_mad_send_buf *, ib_mad_send_wc *) {}, nullptr,
			nullptr);
		for (ib_mad_agent *made : {agent, snoop}) {
			EXPECT_EQ(rdma::is_err(made) ? rdma::ptr_err(made) : 0, row.expected);
			if (!rdma::is_err(made))
				ib_unregister_mad_agent(made);
		}
	}
}

/* Unsolicited segments with the ID of an agent that only sends are dropped. */
void mgmt_03_rmpp_segments_for_a_send_only_agent_are_dropped(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	auto *deaf = ib_register_mad_agent(
		scene.b.device(), 1, IB_QPT_GSI, nullptr, 0,
		[](ib_mad_agent *, ib_mad_send_wc *) {}, nullptr, nullptr, 0);
	ASSERT_FALSE(rdma::is_err(deaf));
	auto made = kern::make<Raw>(kern::Gfp::kernel, scene.invalid_peer, u16{2});
	ASSERT_OK(made);
	Raw &raw = *made.value();
	begin(raw.mad().mad_hdr, vendor_rmpp_class, method_get_multi | IB_MGMT_METHOD_RESP);
	raw.mad().mad_hdr.tid = u64{deaf->hi_tid} << 32 | 1;
	ib_set_rmpp_flags(&raw.mad().rmpp_hdr, IB_MGMT_RMPP_FLAG_ACTIVE);
	EXPECT_TRUE(raw.send(IB_MGMT_MAD_SIZE));
	EXPECT_TRUE(eventually([&] { return dropped(scene.b).no_agent == 1; }));
	EXPECT_TRUE(scene.answers());
	ib_unregister_mad_agent(deaf);
}

} // namespace

SOFT_SUITES(
	mad_bad_input, KUNIT_CASE(mgmt_03_malformed_mads_are_dropped_and_counted),
	KUNIT_CASE(mgmt_03_mad_that_no_agent_serves_gets_an_error_response_only_for_get_and_set),
	KUNIT_CASE(mgmt_03_invalid_rmpp_segments_get_an_abort_and_stray_segments_are_dropped),
	KUNIT_CASE(mgmt_03_flood_of_mads_uses_no_more_buffers_than_the_receive_queue_has),
	KUNIT_CASE(mgmt_12_mad_bursts_are_received_while_a_handler_is_blocked),
	KUNIT_CASE(mgmt_03_invalid_agent_registrations_are_rejected),
	KUNIT_CASE(mgmt_03_invalid_send_and_all_later_sends_of_the_posted_list_are_rejected),
	KUNIT_CASE(mgmt_03_mads_from_a_multicast_lid_are_dropped),
	KUNIT_CASE(mgmt_03_no_mad_resources_are_created_for_an_rnic),
	KUNIT_CASE(mgmt_03_agent_registration_fails_on_ports_without_mad_support),
	KUNIT_CASE(mgmt_03_rmpp_segments_for_a_send_only_agent_are_dropped));
