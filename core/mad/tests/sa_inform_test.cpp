// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests subscriptions to traps, and the reports that subscribers receive (rule MGMT-03).
#include "sa_fixture.hpp"

using namespace mad_fixture;

namespace
{

/* A subscription, and the reports that it received. */
struct Listening {
	kern::Atomic<unsigned int> calls{}, reports{};
	kern::Atomic<int> status{1};
	kern::Atomic<u32> trap{}, gid{};
	kern::Completion *gate = nullptr; /* if set, the handler waits for it */
	ib_inform_info *info = nullptr;

	Listening() = default;
	~Listening() { stop(); }
	Listening(const Listening &) = delete;
	Listening &operator=(const Listening &) = delete;

	int start(Client &client, const Node &node, u16 trap_number)
	{
		info = ib_sa_register_inform_info(&client, node.device(), 1, trap_number, on_call,
						  this);
		return rdma::is_err(info) ? rdma::ptr_err(std::exchange(info, nullptr)) : 0;
	}
	void stop()
	{
		if (info)
			ib_sa_unregister_inform_info(std::exchange(info, nullptr));
	}
	bool delivered(unsigned int n)
	{
		return eventually([&] { return calls.load_acquire() >= n; });
	}

private:
	static int on_call(int result, ib_inform_info *info, ib_sa_notice *notice)
	{
		auto &self = *static_cast<Listening *>(info->context);
		self.status.store_release(result);
		if (notice) {
			self.trap.store_release(notice->trap_number);
			self.gid.store_release(notice->data_details[6 + 15]);
			self.reports.fetch_add(1);
			if (self.gate)
				self.gate->wait();
		}
		self.calls.fetch_add(1);
		return 0;
	}
};

/*
 * Each consumer gets reports of the trap that it subscribed to; the SA is notified of the first and
 * the last consumer; every report is acknowledged.
 */
void mgmt_03_sa_report_of_a_trap_reaches_every_subscriber_of_the_trap(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Listening in, in_too, out, all;
	ASSERT_EQ(in.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_TRUE(in.delivered(1));
	EXPECT_EQ(in.status.load_acquire(), 0);
	EXPECT_EQ(sa.last_trap.load_acquire(), u32{ib::trap_gid_in_service});
	ASSERT_EQ(in_too.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_EQ(out.start(client, node, ib::trap_gid_out_of_service), 0);
	ASSERT_EQ(all.start(client, node, IB_SA_ANY_TRAP), 0);
	ASSERT_TRUE(in_too.delivered(1) && out.delivered(1) && all.delivered(1));
	EXPECT_EQ(sa.subscriptions.load_acquire(), 3u);

	ASSERT_TRUE(sa.report(2, ib::trap_gid_in_service, 7));
	ASSERT_TRUE(sa.report(2, ib::trap_gid_in_service, 8));
	ASSERT_TRUE(sa.report(2, ib::trap_mcast_group_created, 9));
	ASSERT_TRUE(all.delivered(4));
	EXPECT_TRUE(eventually([&] { return sa.acknowledged.load_acquire() == 3; }));
	EXPECT_EQ(all.reports.load_acquire(), 3u);
	EXPECT_EQ(all.trap.load_acquire(), u32{ib::trap_mcast_group_created});
	EXPECT_EQ(all.gid.load_acquire(), 9u);
	for (const Listening *listening : {&in, &in_too}) {
		EXPECT_EQ(listening->reports.load_acquire(), 2u);
		EXPECT_EQ(listening->trap.load_acquire(), u32{ib::trap_gid_in_service});
		EXPECT_EQ(listening->gid.load_acquire(), 8u);
	}
	EXPECT_EQ(out.reports.load_acquire(), 0u);

	/*
	 * The other subscription is cancelled later. If a cancellation of the first one had been
	 * sent to the SA, it would have arrived by then.
	 */
	in.stop();
	out.stop();
	EXPECT_TRUE(eventually([&] { return sa.ends.load_acquire() == 1; }));
	EXPECT_EQ(sa.last_trap.load_acquire(), u32{ib::trap_gid_out_of_service});
	in_too.stop();
	EXPECT_TRUE(eventually([&] { return sa.ends.load_acquire() == 2; }));
	EXPECT_EQ(sa.last_trap.load_acquire(), u32{ib::trap_gid_in_service});
	EXPECT_EQ(in.reports.load_acquire(), 2u);
}

/*
 * A subscription is renewed silently if the SM has changed or requests it; its loss is reported if
 * the SA refuses it.
 */
void mgmt_03_sa_subscription_loss_is_reported_if_renewal_fails(Test &test)
{
	Node old_manager{1}, node{2}, new_manager{3};
	ASSERT_TRUE(old_manager.ok() && node.ok() && new_manager.ok());
	Administrator old_sa(old_manager), new_sa(new_manager);
	ASSERT_TRUE(old_sa.ok() && new_sa.ok());
	Client client;
	Listening listening, refused;
	ASSERT_EQ(listening.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_TRUE(listening.delivered(1));
	report(node, IB_EVENT_CLIENT_REREGISTER);
	EXPECT_TRUE(eventually([&] { return old_sa.subscriptions.load_acquire() == 2; }));
	ASSERT_TRUE(move_manager(node, 3));
	EXPECT_TRUE(eventually([&] { return new_sa.subscriptions.load_acquire() == 1; }));
	EXPECT_EQ(listening.calls.load_acquire(), 1u);

	new_sa.refuse.store_release(ib::sa_status_no_resources);
	report(node, IB_EVENT_CLIENT_REREGISTER);
	ASSERT_TRUE(listening.delivered(2));
	EXPECT_EQ(listening.status.load_acquire(), -ENETRESET);
	ASSERT_EQ(refused.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_TRUE(refused.delivered(1));
	EXPECT_EQ(refused.status.load_acquire(), -EINVAL);
	/* Subscriptions that the SA has not accepted need not be ended. */
	listening.stop();
	refused.stop();
	EXPECT_EQ(new_sa.ends.load_acquire() + old_sa.ends.load_acquire(), 0u);
}

/*
 * A subscriber that is added while the SA processes the last one's unsubscription is subscribed
 * again.
 */
void mgmt_03_sa_new_subscription_waits_for_a_pending_unsubscribe(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	client.timeout_ms = 200;
	client.retries = 10;
	Listening one, other;
	ASSERT_EQ(one.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_TRUE(one.delivered(1));
	sa.deaf_to_ends.store_release(1);
	one.stop();
	ASSERT_TRUE(eventually([&] { return sa.ends.load_acquire() == 1; }));
	ASSERT_EQ(other.start(client, node, ib::trap_gid_in_service), 0);
	ASSERT_TRUE(other.delivered(1));
	EXPECT_EQ(other.status.load_acquire(), 0);
	EXPECT_EQ(sa.ends.load_acquire(), 2u);
	EXPECT_EQ(sa.subscriptions.load_acquire(), 2u);
	other.stop();
}

/*
 * In a flood of reports to a busy subscriber, a bounded number is kept. The others are not
 * acknowledged, and no acknowledged report is lost.
 */
void mgmt_03_sa_reports_are_not_acknowledged_while_64_reports_are_undelivered(Test &test)
{
	constexpr unsigned int kept = 64, flood = kept + 20;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	kern::Completion gate;
	Listening slow;
	slow.gate = &gate;
	ASSERT_EQ(slow.start(client, node, IB_SA_ANY_TRAP), 0);
	ASSERT_TRUE(slow.delivered(1));
	bool sent = true;
	for (unsigned int n = 0; n < flood; n++)
		sent = sent && sa.report(2, ib::trap_gid_in_service, static_cast<u8>(n), 600'000);
	/*
	 * The response to a later query arrives after the flood, so all of the flood has been
	 * received.
	 */
	kern::Atomic<unsigned int> answers{};
	ib_sa_query *query;
	const int asked = ib_sa_class_port_info_query(
		&client, node.device(), 1, 60'000, 0, gfp,
		[](int, ib_class_port_info *, void *context) {
			static_cast<kern::Atomic<unsigned int> *>(context)->fetch_add(1);
		},
		&answers, &query);
	const bool answered = asked > 0 && eventually([&] { return answers.load_acquire() == 1; });
	const bool acknowledged =
		eventually([&] { return sa.acknowledged.load_acquire() == kept; });
	gate.complete_all();
	EXPECT_TRUE(sent && answered && acknowledged);
	EXPECT_TRUE(slow.delivered(1 + kept));
	ASSERT_TRUE(sa.report(2, ib::trap_gid_in_service, 0));
	EXPECT_TRUE(slow.delivered(1 + kept + 1));
	EXPECT_EQ(slow.reports.load_acquire(), kept + 1);
	EXPECT_TRUE(eventually([&] { return sa.acknowledged.load_acquire() == kept + 1; }));
	EXPECT_EQ(sa.unacknowledged.load_acquire(), 0u);
}

/*
 * Only reports from one of the subnet manager's LIDs are accepted, and notices about groups and
 * ports only if the SM issued them.
 */
void mgmt_03_sa_reports_from_nodes_other_than_the_sm_are_dropped(Test &test)
{
	constexpr u16 by_a_node = 128; /* trap 128: a switch reports a change of a link */
	Node manager{1}, outsider{2}, node{4};
	ASSERT_TRUE(manager.ok() && outsider.ok() && node.ok());
	Administrator sa(manager), other(outsider);
	ASSERT_TRUE(sa.ok() && other.ok());
	Client client;
	Listening all;
	ASSERT_EQ(all.start(client, node, IB_SA_ANY_TRAP), 0);
	ASSERT_TRUE(all.delivered(1));
	const u64 before = dropped(node).no_agent;
	const auto refused = [&] { return dropped(node).no_agent - before; };

	ASSERT_TRUE(other.report(4, ib::trap_mcast_group_deleted, 1));
	EXPECT_TRUE(eventually([&] { return refused() == 1; }));
	ASSERT_TRUE(other.report(4, by_a_node, 2, 5000, 2));
	EXPECT_TRUE(eventually([&] { return refused() == 2; }));
	/* Another node has sent these traps to the SM, which forwards them. */
	ASSERT_TRUE(sa.report(4, ib::trap_mcast_group_deleted, 3, 5000, 2));
	EXPECT_TRUE(eventually([&] { return refused() == 3; }));
	ASSERT_TRUE(sa.report(4, ib::trap_gid_in_service, 4, 5000, 2));
	EXPECT_TRUE(eventually([&] { return refused() == 4; }));
	EXPECT_EQ(all.reports.load_acquire(), 0u);

	ASSERT_TRUE(sa.report(4, by_a_node, 5, 5000, 2));
	ASSERT_TRUE(sa.report(4, ib::trap_mcast_group_deleted, 6));
	EXPECT_TRUE(all.delivered(3));
	EXPECT_EQ(all.gid.load_acquire(), 6u);
	EXPECT_TRUE(eventually([&] { return sa.acknowledged.load_acquire() == 2; }));
	EXPECT_EQ(other.acknowledged.load_acquire(), 0u);

	/* With an LMC of 1 the SM has both LIDs. */
	ib_port_attr attr;
	ASSERT_EQ(ib_query_port(node.device(), 1, &attr), 0);
	attr.lmc = 1;
	soft_set_port(node.device(), 1, &attr);
	report(node, IB_EVENT_LID_CHANGE);
	ASSERT_TRUE(eventually([&] { return sa.subscriptions.load_acquire() == 2; }));
	ASSERT_TRUE(other.report(4, ib::trap_mcast_group_deleted, 7, 5000, 2));
	EXPECT_TRUE(all.delivered(4));
	EXPECT_EQ(all.gid.load_acquire(), 7u);
	EXPECT_EQ(refused(), 4u);
}

} // namespace

SOFT_SUITES(mad_sa_inform,
	    KUNIT_CASE(mgmt_03_sa_report_of_a_trap_reaches_every_subscriber_of_the_trap),
	    KUNIT_CASE(mgmt_03_sa_subscription_loss_is_reported_if_renewal_fails),
	    KUNIT_CASE(mgmt_03_sa_new_subscription_waits_for_a_pending_unsubscribe),
	    KUNIT_CASE(mgmt_03_sa_reports_are_not_acknowledged_while_64_reports_are_undelivered),
	    KUNIT_CASE(mgmt_03_sa_reports_from_nodes_other_than_the_sm_are_dropped));
