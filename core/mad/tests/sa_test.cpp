// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each query of the SA client completes once (rule MGMT-03), with an SA that the test
// implements on another node.
#include "sa_fixture.hpp"

using namespace mad_fixture;

namespace
{

/* A path query and its result. */
struct Question {
	kern::Atomic<unsigned int> calls{};
	int status = 1;
	u32 dlid = 0;
	ib_sa_query *query = nullptr;
	int id = 0;

	int ask(Client &client, const Node &node, unsigned long timeout_ms, int retries)
	{
		sa_path_rec rec{};
		id = ib_sa_path_rec_get(
			&client, node.device(), 1, &rec, IB_SA_PATH_REC_DGID, timeout_ms, retries,
			gfp,
			[](int result, sa_path_rec *answer, void *context) {
				auto &self = *static_cast<Question *>(context);
				self.status = result;
				if (answer)
					self.dlid = answer->ib.dlid.value();
				self.calls.fetch_add(1);
			},
			this, &query);
		return id;
	}
	bool answered()
	{
		return eventually([&] { return calls.load_acquire() != 0; });
	}
};

bool knows_of_no_manager(Client &client, const Node &node)
{
	return eventually([&] {
		Question none;
		const int id = none.ask(client, node, 1000, 0);
		if (id > 0)
			none.answered();
		return id == -EAGAIN;
	});
}

void mgmt_03_sa_path_query_returns_the_path_or_the_error_of_the_sa(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Question found, refused;
	ASSERT_GT(found.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(found.answered());
	EXPECT_EQ(found.status, 0);
	EXPECT_EQ(found.dlid, 77u);
	sa.refuse.store_release(ib::sa_status_no_records);
	ASSERT_GT(refused.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(refused.answered());
	EXPECT_EQ(refused.status, -EINVAL);
	EXPECT_EQ(found.calls.load_acquire() + refused.calls.load_acquire(), 2u);
}

void mgmt_03_sa_timed_out_or_cancelled_query_completes_once_with_an_error(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Question timed_out, cancelled;
	{
		Client client;
		Watch watch(node.device(), ~0ul);
		ASSERT_GT(timed_out.ask(client, node, 100, 1), 0);
		ASSERT_TRUE(timed_out.answered());
		EXPECT_EQ(timed_out.status, -ETIMEDOUT);
		EXPECT_EQ(watch.seen.load_acquire(), 2u);
		ASSERT_GT(cancelled.ask(client, node, 600'000, 0), 0);
		ib_sa_cancel_query(cancelled.id + 1, cancelled.query);
		EXPECT_EQ(cancelled.calls.load_acquire(), 0u);
		ib_sa_cancel_query(cancelled.id, cancelled.query);
		ASSERT_TRUE(cancelled.answered());
		EXPECT_EQ(cancelled.status, -EINTR);
		/* Cancelling a completed query has no effect. */
		ib_sa_cancel_query(cancelled.id, cancelled.query);
	}
	EXPECT_EQ(timed_out.calls.load_acquire(), 1u);
	EXPECT_EQ(cancelled.calls.load_acquire(), 1u);
}

/* When the subnet manager moves, queries go to its new LID. Without an SM they fail. */
void mgmt_03_sa_queries_go_to_the_new_lid_after_the_subnet_manager_moved(Test &test)
{
	Node old_manager{1}, node{2}, new_manager{3};
	ASSERT_TRUE(old_manager.ok() && node.ok() && new_manager.ok());
	Administrator old_sa(old_manager), new_sa(new_manager);
	ASSERT_TRUE(old_sa.ok() && new_sa.ok());
	Client client;
	ASSERT_TRUE(move_manager(node, 3));
	EXPECT_TRUE(eventually([&] {
		Question question;
		return question.ask(client, node, 1000, 0) > 0 && question.answered() &&
		       new_sa.gets.load_acquire() > 0;
	}));
	const unsigned int asked_before = old_sa.gets.load_acquire();
	Question question;
	ASSERT_GT(question.ask(client, node, 5000, 0), 0);
	ASSERT_TRUE(question.answered());
	EXPECT_EQ(question.status, 0);
	EXPECT_EQ(old_sa.gets.load_acquire(), asked_before);

	ASSERT_TRUE(move_manager(node, 0));
	EXPECT_TRUE(knows_of_no_manager(client, node));
}

/* Queries use the default partition, at any index of the port's table. */
void mgmt_03_sa_queries_use_the_default_pkey_at_any_table_index(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	soft_set_pkey(node.device(), 1, 0, 0x8123);
	soft_set_pkey(node.device(), 1, 5, IB_DEFAULT_PKEY_FULL);
	report(node, IB_EVENT_PKEY_CHANGE);
	EXPECT_TRUE(eventually([&] {
		Question question;
		return question.ask(client, node, 100, 0) > 0 && question.answered() &&
		       question.status == 0;
	}));
}

/*
 * If an address handle for the subnet manager cannot be created at first, it is created a little
 * later without another event.
 */
void mgmt_03_sa_creation_of_the_sm_address_handle_is_retried(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	for (soft_method method : {SOFT_CREATE_AH, SOFT_QUERY_PORT}) {
		ASSERT_TRUE(move_manager(node, 0));
		ASSERT_TRUE(knows_of_no_manager(client, node));
		/*
		 * Only calls of this device fail: nothing else queries the port or creates address
		 * handles here before the first attempt has failed.
		 */
		const unsigned long before = soft_calls(node.device(), method);
		if (method == SOFT_CREATE_AH)
			soft_fail(node.device(), method, 1, -ENOMEM);
		ib_port_attr attr;
		ASSERT_EQ(ib_query_port(node.device(), 1, &attr), 0);
		attr.sm_lid = 1;
		soft_set_port(node.device(), 1, &attr);
		if (method == SOFT_QUERY_PORT)
			soft_fail(node.device(), method, 2, -ENOMEM);
		report(node, IB_EVENT_SM_CHANGE);
		EXPECT_TRUE(eventually([&] { return soft_calls(node.device(), method) > before; }));
		EXPECT_TRUE(eventually([&] {
			Question question;
			return question.ask(client, node, 1000, 0) > 0 && question.answered() &&
			       question.status == 0;
		}));
		soft_fail(node.device(), method, 0, 0);
	}
}

struct Membership {
	kern::Atomic<unsigned int> calls{};
	kern::Atomic<int> status{1};
	u32 mlid = 0;
	ib_sa_multicast *multicast = nullptr;

	/* @pkey: the P_Key of the group; 0 if it is not specified. */
	int join(Client &client, const Node &node, u8 group = 1, u16 pkey = 0)
	{
		ib_sa_mcmember_rec rec{};
		rec.pkey = pkey;
		rec.mgid.raw[0] = 0xff;
		rec.mgid.raw[1] = 0x12;
		rec.mgid.raw[15] = group;
		rec.port_gid.raw[15] = 2;
		rec.join_state = ib::McMemberRecord::full_member;
		multicast =
			ib_sa_join_multicast(&client, node.device(), 1, &rec,
					     IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
						     IB_SA_MCMEMBER_REC_JOIN_STATE |
						     (pkey ? IB_SA_MCMEMBER_REC_PKEY : 0),
					     gfp, on_change, this);
		return rdma::is_err(multicast) ? rdma::ptr_err(multicast) : 0;
	}
	/* Waits until the callback has been called @n times. */
	bool delivered(unsigned int n)
	{
		return eventually([&] { return calls.load_acquire() >= n; });
	}
	void leave() { ib_sa_free_multicast(std::exchange(multicast, nullptr)); }

private:
	static int on_change(int result, ib_sa_multicast *of)
	{
		auto &self = *static_cast<Membership *>(of->context);
		self.mlid = of->rec.mlid.value();
		self.status.store_release(result);
		self.calls.fetch_add(1);
		return 0;
	}
};

/*
 * Full and limited members of a partition can join its groups; members of another partition cannot.
 */
void mgmt_03_sa_full_and_limited_partition_members_can_join_a_group(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Membership full, limited, other;
	ASSERT_EQ(full.join(client, node, 1, 0x8123), 0);
	ASSERT_TRUE(full.delivered(1));
	EXPECT_EQ(full.status.load_acquire(), 0);
	ASSERT_EQ(limited.join(client, node, 1, 0x0123), 0);
	ASSERT_TRUE(limited.delivered(1));
	EXPECT_EQ(limited.status.load_acquire(), 0);
	ASSERT_EQ(other.join(client, node, 1, 0x8124), 0);
	ASSERT_TRUE(other.delivered(1));
	EXPECT_EQ(other.status.load_acquire(), -EINVAL);
	for (Membership *member : {&full, &limited, &other})
		member->leave();
}

/*
 * A join does not fail for want of the SM's address while the query of that address is still to be
 * repeated: the join repeats it at once.
 */
void mgmt_03_sa_join_immediately_retries_the_failed_creation_of_the_sm_address_handle(Test &test)
{
	constexpr unsigned int joins = 10;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	ASSERT_TRUE(move_manager(node, 0));
	ASSERT_TRUE(knows_of_no_manager(client, node));
	const unsigned long before = soft_calls(node.device(), SOFT_CREATE_AH);
	soft_fail(node.device(), SOFT_CREATE_AH, ~0u, -ENOMEM);
	ASSERT_TRUE(move_manager(node, 1));
	ASSERT_TRUE(eventually([&] { return soft_calls(node.device(), SOFT_CREATE_AH) > before; }));
	const unsigned long first = soft_calls(node.device(), SOFT_CREATE_AH);
	/* Each join makes another attempt at once. */
	for (unsigned int i = 0; i < joins; i++) {
		Membership refused;
		ASSERT_EQ(refused.join(client, node), 0);
		ASSERT_TRUE(refused.delivered(1));
		EXPECT_EQ(refused.status.load_acquire(), -EAGAIN);
		refused.leave();
	}
	/* The first join may have come before its attempt was scheduled. */
	EXPECT_GE(soft_calls(node.device(), SOFT_CREATE_AH) - first, joins - 1);
	soft_fail(node.device(), SOFT_CREATE_AH, 0, 0);
	Membership accepted;
	ASSERT_EQ(accepted.join(client, node), 0);
	ASSERT_TRUE(accepted.delivered(1));
	EXPECT_EQ(accepted.status.load_acquire(), 0);
	accepted.leave();
}

/* Two members share one join; the SA is notified only when the last one leaves. */
void mgmt_03_sa_leave_is_sent_only_when_the_last_local_member_leaves_the_group(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Membership one, other;
	ASSERT_EQ(one.join(client, node), 0);
	ASSERT_TRUE(one.delivered(1));
	EXPECT_EQ(one.status.load_acquire(), 0);
	EXPECT_EQ(one.mlid, 0xc001u);
	ASSERT_EQ(other.join(client, node), 0);
	ASSERT_TRUE(other.delivered(1));
	EXPECT_EQ(other.status.load_acquire(), 0);
	EXPECT_EQ(sa.joins.load_acquire(), 1u);

	/*
	 * A join of another group is processed after the first leave. If the leave had been sent to
	 * the SA, it would have arrived by then.
	 */
	Membership marker;
	one.leave();
	ASSERT_EQ(marker.join(client, node, 2), 0);
	ASSERT_TRUE(marker.delivered(1));
	EXPECT_EQ(sa.leaves.load_acquire(), 0u);
	other.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 1; }));
	marker.leave();
	EXPECT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 2; }));
}

/*
 * A member that joins while the SA processes the last one's leave is joined again, because the SA
 * will have dropped the old membership.
 */
void mgmt_03_sa_group_joined_during_a_pending_leave_is_joined_again(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	client.timeout_ms = 200;
	client.retries = 10;
	Membership one, other;
	ASSERT_EQ(one.join(client, node), 0);
	ASSERT_TRUE(one.delivered(1));
	sa.deaf_to_ends.store_release(1);
	one.leave();
	ASSERT_TRUE(eventually([&] { return sa.leaves.load_acquire() == 1; }));
	ASSERT_EQ(other.join(client, node), 0);
	ASSERT_TRUE(other.delivered(1));
	EXPECT_EQ(other.status.load_acquire(), 0);
	EXPECT_EQ(sa.leaves.load_acquire(), 2u);
	EXPECT_EQ(sa.joins.load_acquire(), 2u);
	other.leave();
}

/*
 * After a client reregistration the group is joined again without notifying its members. If its
 * attributes have changed, the members lose it.
 */
void mgmt_03_sa_member_gets_enetreset_if_a_rejoined_group_has_changed_attributes(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.delivered(1));
	report(node, IB_EVENT_CLIENT_REREGISTER);
	EXPECT_TRUE(eventually([&] { return sa.joins.load_acquire() == 2; }));
	EXPECT_EQ(member.calls.load_acquire(), 1u);

	sa.mlid.store_release(0xc002);
	report(node, IB_EVENT_CLIENT_REREGISTER);
	ASSERT_TRUE(member.delivered(2));
	EXPECT_EQ(member.status.load_acquire(), -ENETRESET);
	member.leave();
}

/* A new subnet manager gets the memberships, even if there was no subnet manager for a while. */
void mgmt_03_sa_membership_is_renewed_at_a_new_subnet_manager(Test &test)
{
	Node old_manager{1}, node{2}, new_manager{3};
	ASSERT_TRUE(old_manager.ok() && node.ok() && new_manager.ok());
	Administrator old_sa(old_manager), new_sa(new_manager);
	ASSERT_TRUE(old_sa.ok() && new_sa.ok());
	Client client;
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.delivered(1));
	ASSERT_TRUE(move_manager(node, 0));
	ASSERT_TRUE(knows_of_no_manager(client, node));
	ASSERT_TRUE(move_manager(node, 3));
	EXPECT_TRUE(eventually([&] { return new_sa.joins.load_acquire() == 1; }));
	EXPECT_EQ(member.calls.load_acquire(), 1u);
	EXPECT_EQ(old_sa.joins.load_acquire(), 1u);
	member.leave();
	EXPECT_TRUE(eventually([&] { return new_sa.leaves.load_acquire() == 1; }));
}

/* A join is retried as often as its client specifies, and then fails. */
void mgmt_03_sa_unanswered_join_is_retried_as_often_as_its_client_specifies(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Client client;
	/*
	 * The timeout is long enough that each request has been sent before the next one; a request
	 * that is still queued is not repeated.
	 */
	client.timeout_ms = 50;
	client.retries = 4;
	Watch watch(node.device(), ~0ul);
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.delivered(1));
	EXPECT_EQ(member.status.load_acquire(), -ETIMEDOUT);
	/* The last request may still be queued when its timeout expires. */
	EXPECT_TRUE(eventually([&] { return watch.seen.load_acquire() >= 5; }));
	EXPECT_EQ(watch.seen.load_acquire(), 5u);
	member.leave();
}

void mgmt_03_sa_service_record_is_returned_to_the_client(Test &test)
{
	struct Outcome {
		kern::Atomic<unsigned int> calls{};
		int status = 1;
		u64 id = 0;
		u32 lease = 0;
		u8 first = 0, last = 0;
	} outcome;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	const auto ask = [&](u8 method, unsigned long timeout_ms = 5000, int retries = 0) {
		ib_sa_service_rec rec{};
		ib_sa_query *query;
		rec.id = 0x1234567890abcdef;
		rec.lease = 300u;
		rec.name[0] = 'n';
		rec.data64[1] = 0x99;
		return ib_sa_service_rec_query(
			&client, node.device(), 1, method, &rec, IB_SA_SERVICE_REC_SERVICE_ID,
			timeout_ms, retries, gfp,
			[](int result, ib_sa_service_rec *answer, void *context) {
				auto &self = *static_cast<Outcome *>(context);
				self.status = result;
				if (answer) {
					self.id = answer->id.value();
					self.lease = answer->lease.value();
					self.first = answer->name[0];
					self.last = static_cast<u8>(answer->data64[1].value());
				}
				self.calls.fetch_add(1);
			},
			&outcome, &query);
	};
	unsigned int calls = 0;
	for (u8 method :
	     {u8{IB_MGMT_METHOD_SET}, u8{IB_MGMT_METHOD_GET}, u8{IB_SA_METHOD_DELETE}}) {
		outcome.id = 0;
		ASSERT_GT(ask(method), 0);
		calls++;
		ASSERT_TRUE(eventually([&] { return outcome.calls.load_acquire() == calls; }));
		EXPECT_EQ(outcome.status, 0);
		EXPECT_EQ(outcome.id, 0x1234567890abcdefu);
		EXPECT_EQ(outcome.lease, 300u);
		EXPECT_EQ(outcome.first, 'n');
		EXPECT_EQ(outcome.last, 0x99);
	}
	EXPECT_EQ(ask(IB_SA_METHOD_GET_TABLE), -EINVAL);
	EXPECT_EQ(ask(IB_MGMT_METHOD_GET, 0), -EINVAL);
	EXPECT_EQ(ask(IB_MGMT_METHOD_GET, 1ul << 31), -EINVAL);
	EXPECT_EQ(ask(IB_MGMT_METHOD_GET, 5000, -1), -EINVAL);
	EXPECT_EQ(outcome.calls.load_acquire(), calls);
}

void mgmt_03_sa_class_port_info_query_returns_capabilities(Test &test)
{
	struct Outcome {
		kern::Atomic<unsigned int> calls{};
		int status = 1;
		u16 capabilities = 0;
	} outcome;
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	Client client;
	ib_sa_query *query;
	ASSERT_GT(ib_sa_class_port_info_query(
			  &client, node.device(), 1, 5000, 0, gfp,
			  [](int result, ib_class_port_info *answer, void *context) {
				  auto &self = *static_cast<Outcome *>(context);
				  self.status = result;
				  if (answer)
					  self.capabilities = answer->capability_mask.value();
				  self.calls.fetch_add(1);
			  },
			  &outcome, &query),
		  0);
	ASSERT_TRUE(eventually([&] { return outcome.calls.load_acquire() == 1; }));
	EXPECT_EQ(outcome.status, 0);
	EXPECT_EQ(outcome.capabilities, u16{ib::sa_cap_ud_multicast});
}

void mgmt_03_join_refused_by_the_sa_is_reported(Test &test)
{
	Node manager{1}, node{2};
	ASSERT_TRUE(manager.ok() && node.ok());
	Administrator sa(manager);
	ASSERT_TRUE(sa.ok());
	sa.refuse.store_release(ib::sa_status_req_invalid);
	Client client;
	Membership member;
	ASSERT_EQ(member.join(client, node), 0);
	ASSERT_TRUE(member.delivered(1));
	EXPECT_EQ(member.status.load_acquire(), -EINVAL);
	EXPECT_EQ(member.calls.load_acquire(), 1u);
	member.leave();
	EXPECT_EQ(sa.leaves.load_acquire(), 0u);
}

} // namespace

SOFT_SUITES(
	mad_sa, KUNIT_CASE(mgmt_03_sa_path_query_returns_the_path_or_the_error_of_the_sa),
	KUNIT_CASE(mgmt_03_sa_timed_out_or_cancelled_query_completes_once_with_an_error),
	KUNIT_CASE(mgmt_03_sa_queries_go_to_the_new_lid_after_the_subnet_manager_moved),
	KUNIT_CASE(mgmt_03_sa_queries_use_the_default_pkey_at_any_table_index),
	KUNIT_CASE(mgmt_03_sa_creation_of_the_sm_address_handle_is_retried),
	KUNIT_CASE(
		mgmt_03_sa_join_immediately_retries_the_failed_creation_of_the_sm_address_handle),
	KUNIT_CASE(mgmt_03_sa_leave_is_sent_only_when_the_last_local_member_leaves_the_group),
	KUNIT_CASE(mgmt_03_sa_full_and_limited_partition_members_can_join_a_group),
	KUNIT_CASE(mgmt_03_sa_group_joined_during_a_pending_leave_is_joined_again),
	KUNIT_CASE(mgmt_03_sa_member_gets_enetreset_if_a_rejoined_group_has_changed_attributes),
	KUNIT_CASE(mgmt_03_join_refused_by_the_sa_is_reported),
	KUNIT_CASE(mgmt_03_sa_membership_is_renewed_at_a_new_subnet_manager),
	KUNIT_CASE(mgmt_03_sa_unanswered_join_is_retried_as_often_as_its_client_specifies),
	KUNIT_CASE(mgmt_03_sa_service_record_is_returned_to_the_client),
	KUNIT_CASE(mgmt_03_sa_class_port_info_query_returns_capabilities));
