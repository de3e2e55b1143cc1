// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-03: each send completes once when the QP fails or the port or device is removed,
// and the special QP recovers.
#include "sa_fixture.hpp"

using namespace mad_fixture;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET;

struct Pair {
	Node a{1}, b{2};
	Agent client{a}, server{b};

	bool ok()
	{
		server.answering = true;
		return a.ok() && b.ok() && client.open() == 0 &&
		       server.open(vendor_class, get) == 0;
	}
	ib_wc_status ask(int timeout_ms = 30'000)
	{
		Sent sent(client, 2, vendor_class, IB_MGMT_METHOD_GET, timeout_ms, 0);
		return sent.ok() && sent.post() == 0 && sent.ended() && sent.completions() == 1
			       ? sent.status()
			       : IB_WC_FATAL_ERR;
	}
};

/*
 * A QP that enters the error state is recovered: queued MADs are sent, and the receive queue is
 * full again.
 */
void mgmt_03_special_qp_in_error_recovers_and_sends_queued_mads(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	EXPECT_EQ(pair.ask(), IB_WC_SUCCESS);
	for (int round = 0; round < 3; round++) {
		for (Agent *agent : {&pair.client, &pair.server})
			ASSERT_TRUE(move_unasked(agent->agent->qp, IB_QPS_ERR));
		/*
		 * Retries are needed, because the server may not have recovered when the first
		 * request arrives.
		 */
		Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 100, 50);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
		EXPECT_EQ(sent.completions(), 1u);
	}
	for (int n = 0; n < 600; n++)
		ASSERT_EQ(pair.ask(), IB_WC_SUCCESS);
}

/*
 * While the recovery fails, sends end with an error instead of waiting forever. The recovery is
 * retried, and once it succeeds, sends succeed.
 */
void mgmt_03_sends_fail_while_the_special_qp_cannot_recover(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	/* Set before the error, because the recovery might otherwise be over before it can fail. */
	soft_fail(pair.a.device(), SOFT_MODIFY_QP, 1000, -EIO);
	Sent any(pair.client, 2, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
	ASSERT_TRUE(any.ok());
	BadRequest bad;
	ASSERT_EQ(bad.post(pair.client.agent->qp, any.buf()->ah), 0);
	bad.ended.wait();
	EXPECT_TRUE(eventually([&] { return pair.ask(20) == IB_WC_WR_FLUSH_ERR; }));
	soft_fail(pair.a.device(), SOFT_MODIFY_QP, 0, 0);
	EXPECT_TRUE(eventually([&] { return pair.ask(1000) == IB_WC_SUCCESS; }));
}

void set_state(const Node &node, ib_port_state state, ib_event_type event)
{
	ib_port_attr attr;

	if (ib_query_port(node.device(), 1, &attr))
		return;
	attr.state = state;
	soft_set_port(node.device(), 1, &attr);
	report(node, event);
}

/*
 * While the port is down, sends time out and SA queries fail. When it is up again, both succeed
 * with the same agents.
 */
void mgmt_03_agents_can_send_again_after_a_port_outage(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	EXPECT_EQ(pair.ask(), IB_WC_SUCCESS);
	ib_sa_client client{};
	ib_sa_register_client(&client);
	const auto ask_sa = [&] {
		static constinit kern::Atomic<unsigned int> calls{};
		const unsigned int before = calls.load_acquire();
		sa_path_rec rec{};
		ib_sa_query *query;
		const int id = ib_sa_path_rec_get(
			&client, pair.b.device(), 1, &rec, IB_SA_PATH_REC_DGID, 100, 0, gfp,
			[](int, sa_path_rec *, void *) { calls.fetch_add(1); }, nullptr, &query);
		if (id > 0)
			eventually([&] { return calls.load_acquire() > before; });
		return id;
	};
	for (int round = 0; round < 2; round++) {
		set_state(pair.b, IB_PORT_DOWN, IB_EVENT_PORT_ERR);
		EXPECT_TRUE(eventually([&] { return ask_sa() == -EAGAIN; }));
		EXPECT_EQ(pair.ask(20), IB_WC_RESP_TIMEOUT_ERR);
		set_state(pair.b, IB_PORT_ACTIVE, IB_EVENT_PORT_ACTIVE);
		EXPECT_EQ(pair.ask(), IB_WC_SUCCESS);
		/* No SA is at LID 1, and that node reports so in its response. */
		EXPECT_TRUE(eventually([&] { return ask_sa() > 0; }));
	}
	ib_sa_unregister_client(&client);
}

/*
 * A client that has outstanding sends when its device is removed. Each send completes once, before
 * the client's remove returns.
 */
struct Guest {
	static constexpr std::size_t count = 100;
	static constexpr u16 unused_lid = 99;
	static inline constinit Guest *present = nullptr;

	kern::Owned<Node> node;
	kern::Owned<Agent> agent;
	kern::OwnedArray<kern::Owned<Sent>> sends;
	ib_pd *pd = nullptr;
	unsigned int removed = 0, ended = 0;

	bool begin(ib_client &client)
	{
		auto made_node = kern::make<Node>(kern::Gfp::kernel, u16{1});
		auto made_sends = kern::make_array<kern::Owned<Sent>>(kern::Gfp::kernel, count);
		if (!made_node.ok() || !made_sends.ok())
			return false;
		node = made_node.take();
		sends = made_sends.take();
		auto made_agent = kern::make<Agent>(kern::Gfp::kernel, *node);
		if (!node->ok() || !made_agent.ok())
			return false;
		agent = made_agent.take();
		present = this;
		if (agent->open() || ib_register_client(&client))
			return false;
		for (auto &sent : sends) {
			auto made =
				kern::make<Sent>(kern::Gfp::kernel, *agent, unused_lid,
						 vendor_class, u8{IB_MGMT_METHOD_GET}, 600'000, 3);
			if (!made.ok())
				return false;
			sent = made.take();
			if (!sent->ok() || sent->post())
				return false;
		}
		return true;
	}
	static int add(ib_device *) { return 0; }
	static void remove(ib_device *device, void *)
	{
		Guest &self = *present;
		if (device != self.agent->node.device())
			return;
		self.agent->close();
		for (const auto &sent : self.sends)
			self.ended +=
				sent->completions() == 1 && sent->status() == IB_WC_WR_FLUSH_ERR;
		self.sends = {};
		ib_dealloc_pd(self.pd);
		self.removed++;
	}
};

void mgmt_03_device_removal_flushes_all_outstanding_sends(Test &test)
{
	ib_client client{"guest", Guest::add, Guest::remove, nullptr};
	Guest guest;
	ASSERT_TRUE(guest.begin(client));
	guest.pd = guest.node->take_pd();
	guest.node.reset();
	EXPECT_EQ(guest.removed, 1u);
	EXPECT_EQ(guest.ended, Guest::count);
	ib_unregister_client(&client);
}

} // namespace

SOFT_SUITES(mad_life, KUNIT_CASE(mgmt_03_special_qp_in_error_recovers_and_sends_queued_mads),
	    KUNIT_CASE(mgmt_03_sends_fail_while_the_special_qp_cannot_recover),
	    KUNIT_CASE(mgmt_03_agents_can_send_again_after_a_port_outage),
	    KUNIT_CASE(mgmt_03_device_removal_flushes_all_outstanding_sends));
