// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests every MAD and SA function that allocates memory, with its first allocation failing, then
// its second, and so on.
#include "sa_fixture.hpp"

using namespace mad_fixture;
using fixture::fail_each;
using fixture::outcome;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET;

void ignore_sent(ib_mad_agent *, ib_mad_send_wc *) {}
void ignore_received(ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *wc)
{
	ib_free_recv_mad(wc);
}

void mad_functions_return_enomem_if_any_allocation_fails(Test &test)
{
	Node node{1};
	ASSERT_TRUE(node.ok());
	ib_device *device = node.device();
	ib_mad_reg_req request{};
	request.mgmt_class = vendor_rmpp_class;
	request.mgmt_class_version = 1;
	request.method_mask[0] = get;
	fail_each(test, [&] {
		return outcome(ib_register_mad_agent(device, 1, IB_QPT_GSI, &request,
						     IB_MGMT_RMPP_VERSION, ignore_sent,
						     ignore_received, nullptr, 0),
			       ib_unregister_mad_agent);
	});
	fail_each(test, [&] {
		return outcome(ib_register_mad_snoop(device, 1, IB_QPT_SMI, IB_MAD_SNOOP_RECVS,
						     nullptr, ignore_received, nullptr),
			       ib_unregister_mad_agent);
	});
	Agent agent{node};
	ASSERT_EQ(agent.open(0, 0, 1, IB_MGMT_RMPP_VERSION), 0);
	for (int data_bytes : {10, 5 * IB_MGMT_VENDOR_DATA})
		fail_each(test, [&] {
			return outcome(ib_create_send_mad(agent.agent, 1, 0, 1, IB_MGMT_VENDOR_HDR,
							  data_bytes, gfp, IB_MGMT_BASE_VERSION),
				       ib_free_send_mad);
		});
}

void sa_functions_return_enomem_if_any_allocation_fails(Test &test)
{
	static constinit kern::Atomic<unsigned int> calls{};
	Node node{1};
	ASSERT_TRUE(node.ok());
	ib_device *device = node.device();
	ib_sa_client client{};
	/* Waits until a query has completed after cancelling it. */
	const auto end = [&](int id, ib_sa_query *query) {
		if (id < 0)
			return id;
		const unsigned int before = calls.load_acquire();
		ib_sa_cancel_query(id, query);
		return eventually([&] { return calls.load_acquire() > before; }) ? 0 : -ETIMEDOUT;
	};
	const auto ask = [&] {
		sa_path_rec rec{};
		ib_sa_query *query = nullptr;
		const int id = ib_sa_path_rec_get(
			&client, device, 1, &rec, IB_SA_PATH_REC_DGID, 600'000, 0, gfp,
			[](int, sa_path_rec *, void *) { calls.fetch_add(1); }, nullptr, &query);
		return end(id, query);
	};
	/* All packets are lost, so that no query is answered before it is cancelled. */
	Watch watch(device, ~0ul);
	fail_each(test, [&] {
		ib_sa_register_client(&client);
		const int error = client.state ? ask() : -ENOMEM;
		if (!client.state)
			EXPECT_EQ(ask(), -ENOMEM);
		ib_sa_unregister_client(&client);
		return error;
	});
	ib_sa_register_client(&client);
	fail_each(test, ask);
	fail_each(test, [&] {
		ib_sa_query *query = nullptr;
		const int id = ib_sa_class_port_info_query(
			&client, device, 1, 600'000, 0, gfp,
			[](int, ib_class_port_info *, void *) { calls.fetch_add(1); }, nullptr,
			&query);
		return end(id, query);
	});
	fail_each(test, [&] {
		ib_sa_service_rec rec{};
		ib_sa_query *query = nullptr;
		const int id = ib_sa_service_rec_query(
			&client, device, 1, IB_MGMT_METHOD_GET, &rec, IB_SA_SERVICE_REC_SERVICE_ID,
			600'000, 0, gfp,
			[](int, ib_sa_service_rec *, void *) { calls.fetch_add(1); }, nullptr,
			&query);
		return end(id, query);
	});
	fail_each(test, [&] {
		ib_sa_mcmember_rec rec{};
		rec.mgid.raw[0] = 0xff;
		rec.join_state = ib::McMemberRecord::full_member;
		return outcome(ib_sa_join_multicast(
				       &client, device, 1, &rec,
				       IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
					       IB_SA_MCMEMBER_REC_JOIN_STATE,
				       gfp, [](int, ib_sa_multicast *) { return 0; }, nullptr),
			       ib_sa_free_multicast);
	});
	fail_each(test, [&] {
		return outcome(ib_sa_register_inform_info(
				       &client, device, 1, IB_SA_ANY_TRAP,
				       [](int, ib_inform_info *, ib_sa_notice *) { return 0; },
				       nullptr),
			       ib_sa_unregister_inform_info);
	});
	ib_sa_unregister_client(&client);
}

/*
 * A message and its response, with each allocation on either side failing once: receive buffers,
 * reassembly, ACKs, responses of the stack itself, and what the hardware needs. The send completes
 * once, with any status, and the next exchange succeeds.
 */
void mad_exchange_succeeds_after_an_exchange_in_which_any_allocation_failed(Test &test)
{
	constexpr u8 method = 0x14;
	Node a{1}, b{2};
	ASSERT_TRUE(a.ok() && b.ok());
	Agent client{a}, server{b};
	server.answering = true;
	ASSERT_EQ(client.open(0, 0, 1, IB_MGMT_RMPP_VERSION), 0);
	ASSERT_EQ(server.open(vendor_rmpp_class, 1ul << method, 1, IB_MGMT_RMPP_VERSION), 0);
	const auto exchange = [&](int bytes, int timeout_ms) {
		server.answer_bytes = bytes;
		Sent sent(client, 2, vendor_rmpp_class, method, timeout_ms, 2, bytes);
		if (!EXPECT_TRUE(sent.ok()) || !EXPECT_EQ(sent.post(), 0))
			return IB_WC_FATAL_ERR;
		EXPECT_TRUE(sent.ended());
		return sent.status();
	};
	for (int bytes : {10, 3 * IB_MGMT_VENDOR_DATA}) {
		unsigned int nth = 0;
		for (bool failed = true; failed && nth < 200;) {
			kern_fail_work_allocation(++nth);
			exchange(bytes, 20);
			failed = kern_fail_work_allocation(0) == 0;
			EXPECT_EQ(exchange(bytes, 5000), IB_WC_SUCCESS);
		}
		EXPECT_GT(nth, 5u);
		EXPECT_LT(nth, 200u);
	}
}

/*
 * A device is registered while any allocation of the MAD layer fails: either the device is
 * registered without management, which is reported, or its registration fails.
 */
void device_registration_fails_or_omits_mad_support_if_an_allocation_fails(Test &test)
{
	constexpr soft_options plain = {.lid = 1};
	bool failed = true;
	/*
	 * Each of the first 40 allocations fails in turn, and then one in 61 of the thousand that
	 * fill the receive queues.
	 */
	for (unsigned int nth = 1; failed; nth += nth < 40 ? 1 : 61) {
		kern_fail_allocation(nth);
		ib_device *device = soft_create(&plain);
		failed = kern_allocation_failed();
		kern_fail_allocation(0);
		if (rdma::is_err(device)) {
			EXPECT_EQ(rdma::ptr_err(device), -ENOMEM);
			EXPECT_TRUE(failed);
			continue;
		}
		auto *agent = ib_register_mad_agent(device, 1, IB_QPT_GSI, nullptr, 0, ignore_sent,
						    ignore_received, nullptr, 0);
		if (rdma::is_err(agent)) {
			EXPECT_EQ(rdma::ptr_err(agent), -ENODEV);
			EXPECT_TRUE(failed);
		} else {
			ib_unregister_mad_agent(agent);
		}
		soft_destroy(device);
	}
}

/*
 * A client is registered while memory is short: it is refused, or is not added to the device. A
 * client that was added is removed.
 */
void client_registration_fails_or_omits_the_device_if_an_allocation_fails(Test &test)
{
	static constinit kern::Atomic<int> present{};
	static constinit kern::Atomic<unsigned int> adds{};
	Node node{1};
	ASSERT_TRUE(node.ok());
	bool failed = true;
	for (unsigned int nth = 1; failed; nth++) {
		ib_client client{"hungry",
				 [](ib_device *) {
					 present.fetch_add(1);
					 adds.fetch_add(1);
					 return 0;
				 },
				 [](ib_device *, void *) { present.fetch_add(-1); }, nullptr};
		kern_fail_allocation(nth);
		const int error = ib_register_client(&client);
		failed = kern_allocation_failed();
		kern_fail_allocation(0);
		if (error)
			EXPECT_EQ(error, -ENOMEM);
		else
			ib_unregister_client(&client);
		EXPECT_EQ(present.load_acquire(), 0);
		EXPECT_TRUE(failed || error == 0);
	}
	EXPECT_GT(adds.load_acquire(), 0u);
}

} // namespace

CARD_SUITE(mad_allocation, KUNIT_CASE(mad_functions_return_enomem_if_any_allocation_fails),
	   KUNIT_CASE(sa_functions_return_enomem_if_any_allocation_fails),
	   KUNIT_CASE(mad_exchange_succeeds_after_an_exchange_in_which_any_allocation_failed),
	   KUNIT_CASE(device_registration_fails_or_omits_mad_support_if_an_allocation_fails),
	   KUNIT_CASE(client_registration_fails_or_omits_the_device_if_an_allocation_fails));
