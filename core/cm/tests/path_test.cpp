// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests service ID resolution (SIDR), alternate paths (LAP, APR), and the counters of CM messages.
#include <rdma/ib_port_counters.h>
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

int resolve(End &end, const Node &from, const Node &to, u64 which = service,
	    unsigned long timeout_ms = 500)
{
	const sa_path_rec path = from.path_to(to);
	ib_cm_sidr_req_param param{};
	param.path = &path;
	param.service_id = which;
	param.timeout_ms = timeout_ms;
	param.private_data = "who";
	param.private_data_len = 4;
	param.max_cm_retries = 2;
	return ib_send_cm_sidr_req(end.id, &param);
}

void cm_09_sidr_resolves_a_service_id_to_qpn_and_qkey(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_EQ(resolve(pair->active, pair->a, pair->b), 0);
	EXPECT_EQ(pair->active.state(), IB_CM_SIDR_REQ_SENT);
	ASSERT_TRUE(pair->passive.receives(IB_CM_SIDR_REQ_RECEIVED));
	EXPECT_EQ(pair->passive.last.param.sidr_req_rcvd.service_id, service);
	EXPECT_EQ(pair->passive.last.param.sidr_req_rcvd.port, 1u);
	EXPECT_EQ(pair->passive.last.param.sidr_req_rcvd.pkey, IB_DEFAULT_PKEY_FULL);
	EXPECT_TRUE(pair->passive.last.param.sidr_req_rcvd.listen_id == pair->listener.id);
	EXPECT_EQ(__builtin_memcmp(pair->passive.data, "who", 4), 0);
	ib_cm_sidr_rep_param rep{};
	rep.qp_num = 0x1000000;
	EXPECT_EQ(ib_send_cm_sidr_rep(pair->passive.id, &rep), -EINVAL);
	rep.qp_num = other_qpn;
	rep.qkey = 0x1234567;
	rep.info = "info";
	rep.info_length = 5;
	rep.private_data = "me";
	rep.private_data_len = 3;
	ASSERT_EQ(ib_send_cm_sidr_rep(pair->passive.id, &rep), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_SIDR_REP_RECEIVED));
	const auto &sidr_rep = pair->active.last.param.sidr_rep_rcvd;
	EXPECT_EQ(sidr_rep.status, IB_SIDR_SUCCESS);
	EXPECT_EQ(sidr_rep.qpn, other_qpn);
	EXPECT_EQ(sidr_rep.qkey, 0x1234567u);
	EXPECT_EQ(sidr_rep.info_len, 5);
	EXPECT_EQ(__builtin_memcmp(pair->active.data, "me", 3), 0);
	EXPECT_EQ(pair->active.state(), IB_CM_IDLE);
	EXPECT_EQ(pair->passive.state(), IB_CM_IDLE);
}

/*
 * If no listener serves the service ID, resolution fails immediately. If there is no response, the
 * request is retransmitted and then fails.
 */
void cm_09_sidr_without_a_listener_or_a_response_reports_an_error(Test &test)
{
	Boxed<Pair> pair;
	Boxed<UnknownPeer> mute(u16{3});
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(mute->open());
	ASSERT_EQ(resolve(pair->active, pair->a, pair->b, service + 1), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_SIDR_REP_RECEIVED));
	EXPECT_EQ(pair->active.last.param.sidr_rep_rcvd.status, IB_SIDR_UNSUPPORTED);
	const u64 begin = kern::now_ns();
	ASSERT_EQ(resolve(pair->active, pair->a, mute->node), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_SIDR_REQ_ERROR));
	EXPECT_GE((kern::now_ns() - begin) / 1'000'000, 1'500u);
	EXPECT_EQ(mute->received(ib::CmAttribute::sidr_req), 3u);
	EXPECT_EQ(resolve(pair->active, pair->a, pair->b, service, 0), -EINVAL);
	/* A timeout too long to be expressed in nanoseconds does not become zero. */
	ASSERT_EQ(resolve(pair->active, pair->a, mute->node, service, 1ul << 58), 0);
	kern::sleep_ms(1000);
	EXPECT_EQ(pair->active.delivered(IB_CM_SIDR_REQ_ERROR), 1u);
}

void cm_10_alternate_path_is_loaded_after_apr_accepts_it(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->connect());
	const sa_path_rec path = pair->a.path_to(pair->b, 12);
	/* The passive side must not propose a path. */
	EXPECT_EQ(ib_send_cm_lap(pair->passive.id, &path, nullptr, 0), -EINVAL);
	EXPECT_EQ(ib_cm_notify(pair->active.id, IB_EVENT_PATH_MIG), -EINVAL);
	for (unsigned int round = 1; round <= 2; round++) {
		ASSERT_EQ(ib_send_cm_lap(pair->active.id, &path, "lap", 4), 0);
		EXPECT_EQ(ib_send_cm_lap(pair->active.id, &path, "lap", 4), -EINVAL);
		ASSERT_TRUE(pair->passive.receives(IB_CM_LAP_RECEIVED, round));
		EXPECT_EQ(__builtin_memcmp(pair->passive.data, "lap", 4), 0);
		EXPECT_TRUE(pair->passive.path.dgid == pair->a.gid());
		EXPECT_EQ(pair->passive.path.mtu, IB_MTU_2048);
		const auto status = round == 1 ? IB_CM_APR_REJECT : IB_CM_APR_SUCCESS;
		ASSERT_EQ(ib_send_cm_apr(pair->passive.id, status, "i", 2, "apr", 4), 0);
		ASSERT_TRUE(pair->active.receives(IB_CM_APR_RECEIVED, round));
		EXPECT_EQ(pair->active.last.param.apr_rcvd.ap_status, status);
		EXPECT_EQ(pair->active.last.param.apr_rcvd.info_len, 2);
		EXPECT_EQ(__builtin_memcmp(pair->active.data, "apr", 4), 0);
		/* Both sides load the path on which they have agreed. */
		for (const End *end : {&pair->active, &pair->passive}) {
			ib_qp_attr attr{};
			int mask = 0;
			attr.qp_state = IB_QPS_RTS;
			ASSERT_EQ(ib_cm_init_qp_attr(end->id, &attr, &mask), 0);
			EXPECT_EQ(mask == (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE), round == 2);
			if (round == 2) {
				EXPECT_EQ(attr.path_mig_state, IB_MIG_REARM);
				EXPECT_EQ(rdma_ah_get_dlid(&attr.alt_ah_attr),
					  end == &pair->active ? 2u : 1u);
				EXPECT_EQ(attr.alt_timeout, 13);
			}
		}
	}
	/* The card has migrated, so this is the only path now. */
	EXPECT_EQ(ib_cm_notify(pair->active.id, IB_EVENT_PATH_MIG), 0);
	EXPECT_EQ(ib_cm_notify(pair->active.id, IB_EVENT_PATH_MIG), -EINVAL);
	ib_qp_attr attr{};
	int mask = 0;
	attr.qp_state = IB_QPS_RTS;
	ASSERT_EQ(ib_cm_init_qp_attr(pair->active.id, &attr, &mask), 0);
	EXPECT_EQ(attr.timeout, 13);
	EXPECT_FALSE(mask & IB_QP_ALT_PATH);
}

/* An unanswered LAP is abandoned, and the connection stays. A lost APR is sent again. */
void cm_10_connection_stays_established_if_a_lap_is_unanswered(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->connect());
	const sa_path_rec path = pair->a.path_to(pair->b, 12);
	ASSERT_EQ(ib_send_cm_lap(pair->active.id, &path, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_LAP_ERROR));
	EXPECT_EQ(pair->active.state(), IB_CM_ESTABLISHED);
	EXPECT_EQ(pair->passive.delivered(IB_CM_LAP_RECEIVED), 1u);
	EXPECT_EQ(pair->b.counters().duplicates[IB_CM_COUNTER_LAP], 3u);
	ASSERT_EQ(ib_send_cm_apr(pair->passive.id, IB_CM_APR_SUCCESS, nullptr, 0, nullptr, 0), 0);
	/* This APR must arrive; the next one is lost. */
	ASSERT_TRUE(
		eventually([&] { return pair->a.counters().received[IB_CM_COUNTER_APR] == 1; }));

	static constinit kern::Atomic<int> left{};
	left.store_release(1);
	soft_watch(
		pair->b.device(),
		[](void *, const void *payload, size_t) {
			return static_cast<const ib_mad_hdr *>(payload)->attr_id.value() ==
				       static_cast<u16>(ib::CmAttribute::apr) &&
			       left.fetch_sub(1) > 0;
		},
		nullptr);
	ASSERT_EQ(ib_send_cm_lap(pair->active.id, &path, nullptr, 0), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_LAP_RECEIVED, 2));
	ASSERT_EQ(ib_send_cm_apr(pair->passive.id, IB_CM_APR_SUCCESS, nullptr, 0, nullptr, 0), 0);
	ASSERT_TRUE(
		eventually([&] { return pair->b.counters().received[IB_CM_COUNTER_LAP] >= 6; }));
	ASSERT_TRUE(eventually([&] {
		return pair->b.counters().duplicates[IB_CM_COUNTER_LAP] >= 4 ||
		       pair->passive.delivered(IB_CM_LAP_RECEIVED) > 2;
	}));
	ASSERT_EQ(pair->passive.delivered(IB_CM_LAP_RECEIVED), 2u);
	EXPECT_TRUE(pair->active.receives(IB_CM_APR_RECEIVED));
	soft_watch(pair->b.device(), nullptr, nullptr);
}

/*
 * A late APR to an abandoned LAP is not taken for the response to the next LAP: both sides load the
 * path that both have accepted.
 */
void cm_10_apr_after_the_lap_timed_out_does_not_answer_the_next_lap(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->connect());
	const sa_path_rec first = pair->a.path_to(pair->b, 12),
			  second = pair->a.path_to(pair->b, 17);
	ASSERT_EQ(ib_send_cm_lap(pair->active.id, &first, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_LAP_ERROR));
	ASSERT_EQ(ib_send_cm_lap(pair->active.id, &second, nullptr, 0), 0);
	ASSERT_TRUE(
		eventually([&] { return pair->b.counters().duplicates[IB_CM_COUNTER_LAP] >= 4; }));
	EXPECT_EQ(pair->passive.delivered(IB_CM_LAP_RECEIVED), 1u);
	ASSERT_EQ(ib_send_cm_apr(pair->passive.id, IB_CM_APR_SUCCESS, nullptr, 0, nullptr, 0), 0);
	ASSERT_TRUE(
		eventually([&] { return pair->a.counters().received[IB_CM_COUNTER_APR] == 1; }));
	EXPECT_EQ(pair->active.delivered(IB_CM_APR_RECEIVED), 0u);
	/* The second LAP is retransmitted, received and answered. */
	ASSERT_TRUE(pair->passive.receives(IB_CM_LAP_RECEIVED, 2));
	ASSERT_EQ(ib_send_cm_apr(pair->passive.id, IB_CM_APR_SUCCESS, nullptr, 0, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_APR_RECEIVED));
	for (const End *end : {&pair->active, &pair->passive}) {
		ib_qp_attr attr{};
		int mask = 0;
		attr.qp_state = IB_QPS_RTS;
		ASSERT_EQ(ib_cm_init_qp_attr(end->id, &attr, &mask), 0);
		EXPECT_EQ(attr.alt_timeout, 18);
	}
}

/* With two ports: after a migration, messages use the port of the connection's current path. */
void cm_10_cm_messages_use_the_alternate_path_after_a_path_migration(Test &test)
{
	Boxed<Node> a(u16{1}, u32{0}, 2u), b(u16{11}, u32{0}, 2u);
	Boxed<End> active, listener, passive;
	ASSERT_TRUE(a.ok() && b.ok());
	listener->fresh = &*passive;
	ASSERT_TRUE(active->open(*a) && listener->open(*b));
	ASSERT_EQ(ib_cm_listen(listener->id, service, 0), 0);
	ASSERT_EQ(active->request(*a, *b), 0);
	ASSERT_TRUE(passive->receives(IB_CM_REQ_RECEIVED));
	ASSERT_EQ(passive->reply(), 0);
	ASSERT_TRUE(active->receives(IB_CM_REP_RECEIVED));
	ASSERT_EQ(ib_send_cm_rtu(active->id, nullptr, 0), 0);
	ASSERT_TRUE(passive->receives(IB_CM_RTU_RECEIVED));

	const sa_path_rec path = a->path_to(*b, 12, 2);
	ASSERT_EQ(ib_send_cm_lap(active->id, &path, nullptr, 0), 0);
	ASSERT_TRUE(passive->receives(IB_CM_LAP_RECEIVED));
	ASSERT_EQ(ib_send_cm_apr(passive->id, IB_CM_APR_SUCCESS, nullptr, 0, nullptr, 0), 0);
	ASSERT_TRUE(active->receives(IB_CM_APR_RECEIVED));
	ASSERT_EQ(ib_cm_notify(active->id, IB_EVENT_PATH_MIG), 0);
	ASSERT_EQ(ib_cm_notify(passive->id, IB_EVENT_PATH_MIG), 0);
	ASSERT_EQ(ib_send_cm_dreq(active->id, nullptr, 0), 0);
	EXPECT_EQ(a->counters(1).sent[IB_CM_COUNTER_DREQ], 0u);
	EXPECT_EQ(a->counters(2).sent[IB_CM_COUNTER_DREQ], 1u);
	ASSERT_TRUE(passive->receives(IB_CM_DREQ_RECEIVED));
	ASSERT_EQ(ib_send_cm_drep(passive->id, nullptr, 0), 0);
	EXPECT_EQ(b->counters(2).sent[IB_CM_COUNTER_DREP], 1u);
	EXPECT_TRUE(active->receives(IB_CM_DREP_RECEIVED));
}

void cm_12_each_message_is_counted_as_sent_and_received(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->connect());
	ASSERT_EQ(ib_send_cm_dreq(pair->active.id, nullptr, 0), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_DREQ_RECEIVED));
	ASSERT_EQ(ib_send_cm_drep(pair->passive.id, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_DREP_RECEIVED));
	const auto count = [](const Node &node, bool sent, ib_cm_counter_kind kind) {
		const auto now = node.counters();
		return sent ? now.sent[kind] : now.received[kind];
	};
	for (bool sent : {true, false}) {
		const Node &asking = sent ? pair->a : pair->b, &asked = sent ? pair->b : pair->a;
		for (auto kind : {IB_CM_COUNTER_REQ, IB_CM_COUNTER_RTU, IB_CM_COUNTER_DREQ}) {
			EXPECT_EQ(count(asking, sent, kind), 1u);
			EXPECT_EQ(count(asked, sent, kind), 0u);
		}
		for (auto kind : {IB_CM_COUNTER_REP, IB_CM_COUNTER_DREP}) {
			EXPECT_EQ(count(asked, sent, kind), 1u);
			EXPECT_EQ(count(asking, sent, kind), 0u);
		}
	}
	ib_cm_counters counters;
	EXPECT_EQ(ib_cm_query_counters(pair->a.device(), 2, &counters), -EINVAL);
	Boxed<UnknownPeer> without(u16{3});
	EXPECT_EQ(ib_cm_query_counters(without->node.device(), 1, &counters), -ENODEV);
}

/*
 * While a module shows counters, they have the counted values and Linux's names.
 */
void cm_12_counters_are_exported_under_the_names_that_linux_uses(Test &test)
{
	static const ib_port_counters *seen;
	static constexpr ib_port_counters_notifier notifier = {
		.show = [](const ib_port_counters *counters) { seen = counters; }};
	seen = nullptr;
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok() && pair->connect());
	ASSERT_EQ(ib_set_port_counters_notifier(&notifier), 0);
	EXPECT_EQ(ib_set_port_counters_notifier(nullptr), 0);
	ASSERT_TRUE(seen && seen->directory_count == 4 && seen->count == IB_CM_COUNTER_KINDS);
	const auto place = [](const char *const *names, u32 count, const char *name) {
		u32 i = 0;
		while (i < count && __builtin_strcmp(names[i], name) != 0)
			i++;
		return i;
	};
	const auto shown = [&](const Node &node, const char *directory, const char *name) {
		u64 value = ~u64{0};
		seen->read(node.device(), 1,
			   place(seen->directories, seen->directory_count, directory),
			   place(seen->names, seen->count, name), &value);
		return value;
	};
	EXPECT_EQ(shown(pair->a, "cm_tx_msgs", "req"), 1u);
	EXPECT_EQ(shown(pair->b, "cm_rx_msgs", "req"), 1u);
	EXPECT_EQ(shown(pair->b, "cm_tx_msgs", "rep"), 1u);
	EXPECT_EQ(shown(pair->a, "cm_rx_msgs", "rep"), 1u);
	EXPECT_EQ(shown(pair->a, "cm_tx_msgs", "rtu"), 1u);
	EXPECT_EQ(shown(pair->a, "cm_rx_msgs", "req") + shown(pair->b, "cm_tx_retries", "rep") +
			  shown(pair->b, "cm_rx_duplicates", "req"),
		  0u);
	EXPECT_TRUE(seen->has(pair->a.device(), 1));
	u64 value;
	EXPECT_EQ(seen->read(pair->a.device(), 2, 0, 0, &value), -ENODEV);
	Boxed<UnknownPeer> without(u16{3});
	EXPECT_EQ(seen->read(without->node.device(), 1, 0, 0, &value), -ENODEV);
}

} // namespace

CARD_SUITE(cm_path, KUNIT_CASE(cm_09_sidr_resolves_a_service_id_to_qpn_and_qkey),
	   KUNIT_CASE(cm_09_sidr_without_a_listener_or_a_response_reports_an_error),
	   KUNIT_CASE(cm_10_alternate_path_is_loaded_after_apr_accepts_it),
	   KUNIT_CASE(cm_10_connection_stays_established_if_a_lap_is_unanswered),
	   KUNIT_CASE(cm_10_apr_after_the_lap_timed_out_does_not_answer_the_next_lap),
	   KUNIT_CASE(cm_10_cm_messages_use_the_alternate_path_after_a_path_migration),
	   KUNIT_CASE(cm_12_each_message_is_counted_as_sent_and_received),
	   KUNIT_CASE(cm_12_counters_are_exported_under_the_names_that_linux_uses));
