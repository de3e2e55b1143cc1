// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests listeners: thousands at the same time, service ID masks, the backlog, and the lookup
// tables.
#include <kern/completion.hpp>
#include "../pair_table.hpp"
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

int listen(const End &end, u64 id, u64 mask = 0)
{
	return ib_cm_listen(end.id, id, mask);
}

void cm_08_req_reaches_the_listener_of_its_service_id_among_1000_listeners(Test &test)
{
	constexpr std::size_t count = 1000;
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	auto made = kern::make_array<ib_cm_id *>(kern::Gfp::kernel, count);
	ASSERT_OK(made);
	const auto all = made.take();
	static constinit kern::Atomic<u64> asked{};
	asked.store_release(0);
	const auto handler = [](ib_cm_id *id, const ib_cm_event *event) {
		if (event->event == IB_CM_REQ_RECEIVED)
			asked.store_release(id->service_id);
		/* The new ID is refused, and the listener stays. */
		return 1;
	};
	std::size_t listening = 0;
	for (auto &id : all) {
		id = ib_create_cm_id(pair->b.device(), handler, nullptr);
		if (rdma::is_err(id) || ib_cm_listen(id, service + 1 + listening, u64{0}))
			break;
		listening++;
	}
	EXPECT_EQ(listening, count);
	for (u64 which : {service + 1, service + 777, service + count}) {
		ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, which), 0);
		EXPECT_TRUE(eventually([&] { return asked.load_acquire() == which; }));
		EXPECT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));
		EXPECT_EQ(pair->active.last.param.rej_rcvd.reason, IB_CM_REJ_CONSUMER_DEFINED);
		pair->active.close();
		ASSERT_TRUE(pair->active.open(pair->a));
	}
	for (std::size_t i = 0; i < listening; i++)
		ib_destroy_cm_id(all[i]);
	ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, service + 777), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));
	EXPECT_EQ(pair->active.last.param.rej_rcvd.reason, IB_CM_REJ_INVALID_SERVICE_ID);
}

/* Service IDs in use and invalid ones are refused; assigned ones are unique. */
void cm_08_ib_cm_listen_rejects_service_ids_that_are_invalid_or_in_use(Test &test)
{
	Boxed<Pair> pair;
	Boxed<End> other, third;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(other->open(pair->b) && third->open(pair->b));
	EXPECT_EQ(listen(*other, service), -EBUSY);
	EXPECT_EQ(listen(*other, 0x0200000000000001), -EINVAL);
	EXPECT_EQ(listen(*other, IB_CM_ASSIGN_SERVICE_ID_HOST, 0xff), -EINVAL);
	EXPECT_EQ(listen(*other, IB_CM_ASSIGN_SERVICE_ID_HOST), 0);
	EXPECT_EQ(listen(*third, IB_CM_ASSIGN_SERVICE_ID_HOST), 0);
	EXPECT_NE(other->id->service_id, third->id->service_id.value());
	EXPECT_EQ(other->id->service_id.value() >> 56, 2u);
	EXPECT_EQ(listen(*other, service + 1), -EINVAL);
	ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, third->id->service_id), 0);
	EXPECT_TRUE(third->receives(IB_CM_REQ_RECEIVED));
	/* The new ID was not accepted, but the consumer owns it. */
	ib_destroy_cm_id(third->newest);
}

/* The listener whose mask has the most bits gets the request. */
void cm_08_listener_with_the_most_specific_mask_gets_the_request(Test &test)
{
	constexpr u64 range = 0x3000000000000000;
	Boxed<Pair> pair;
	Boxed<End> all, some, one, more;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(all->open(pair->b) && some->open(pair->b) && one->open(pair->b) &&
		    more->open(pair->b));
	const auto refuse = [](End &, const ib_cm_event &) { return 1; };
	all->on_event = some->on_event = one->on_event = refuse;
	ASSERT_EQ(listen(*all, range, 0xff00000000000000), 0);
	ASSERT_EQ(listen(*some, range + 0x1200, 0xffffffffffffff00), 0);
	ASSERT_EQ(listen(*one, range + 0x1234), 0);
	EXPECT_EQ(listen(*more, range + 0x12ff, 0xffffffffffffff00), -EBUSY);
	const struct {
		u64 which;
		End &whose;
	} cases[] = {{range + 0x1234, *one}, {range + 0x1235, *some}, {range + 0x1334, *all}};
	for (const auto &each : cases) {
		const unsigned int before = each.whose.all();
		pair->active.close();
		ASSERT_TRUE(pair->active.open(pair->a));
		ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, each.which), 0);
		ASSERT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));
		EXPECT_TRUE(eventually([&] { return each.whose.all() == before + 1; }));
	}
	EXPECT_EQ(all->all() + some->all() + one->all(), 3u);

	/* Eight masks can be in use, and a ninth is refused until one is released. */
	Boxed<End> masks[5];
	for (unsigned i = 0; i < 5; i++) {
		ASSERT_TRUE(masks[i]->open(pair->b));
		EXPECT_EQ(listen(*masks[i], range, ~u64{0} << (i + 1)), 0);
	}
	EXPECT_EQ(listen(*more, range, ~u64{0} << 20), -EBUSY);
	masks[0]->close();
	EXPECT_EQ(listen(*more, range, ~u64{0} << 20), 0);
}

/*
 * A flood of REQs fills only the backlog of its listener. Other listeners are served meanwhile, and
 * this one afterwards.
 */
void cm_08_flood_of_reqs_does_not_exceed_the_listen_backlog(Test &test)
{
	constexpr unsigned int backlog = 8, flood = 30;
	static constinit kern::Atomic<bool> held{};
	Boxed<Pair> pair;
	Boxed<UnknownPeer> peer(u16{3});
	Boxed<End> other;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(peer->open() && other->open(pair->b));
	held.store_release(true);
	pair->listener.fresh = nullptr;
	pair->listener.on_event = [](End &, const ib_cm_event &) {
		eventually([] { return !held.load_acquire(); });
		return 1;
	};
	EXPECT_EQ(ib_cm_set_backlog(pair->listener.id, 0), -EINVAL);
	EXPECT_EQ(ib_cm_set_backlog(pair->listener.id, 4097), -EINVAL);
	EXPECT_EQ(ib_cm_set_backlog(pair->active.id, 5), -EINVAL);
	ASSERT_EQ(ib_cm_set_backlog(pair->listener.id, backlog), 0);
	for (unsigned int n = 0; n < flood; n++)
		ASSERT_TRUE(peer->says(pair->b, peer->make_req(pair->b, 0x1000 + n, 0x2000 + n)));
	EXPECT_EQ(pair->b.counters().no_room, flood - backlog);
	EXPECT_EQ(peer->received(ib::CmAttribute::rej), 0u);

	other->on_event = [](End &, const ib_cm_event &) { return 1; };
	ASSERT_EQ(ib_cm_listen(other->id, service + 1, u64{0}), 0);
	ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, service + 1), 0);
	EXPECT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));

	held.store_release(false);
	EXPECT_TRUE(peer->receives(ib::CmAttribute::rej, backlog));
	ASSERT_TRUE(peer->says(pair->b, peer->make_req(pair->b, 0x5000, 0x6000)));
	EXPECT_TRUE(peer->receives(ib::CmAttribute::rej, backlog + 1));
}

/*
 * A listener with the default backlog whose handler sleeps: 16 of its new IDs are delivered at a
 * time, and IDs of other listeners are not delayed.
 */
void cm_08_listener_with_a_blocked_handler_does_not_delay_other_listeners(Test &test)
{
	constexpr unsigned int backlog = 256, flood = 300, turns = 16;
	static constinit kern::Atomic<bool> held{};
	Boxed<Pair> pair;
	Boxed<UnknownPeer> peer(u16{3});
	Boxed<End> other;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(peer->open() && other->open(pair->b));
	held.store_release(true);
	pair->listener.fresh = nullptr;
	pair->listener.on_event = [](End &, const ib_cm_event &) {
		eventually([] { return !held.load_acquire(); });
		return 1;
	};
	for (unsigned int n = 0; n < flood; n++)
		ASSERT_TRUE(peer->says(pair->b, peer->make_req(pair->b, 0x1000 + n, 0x2000 + n)));
	EXPECT_EQ(pair->b.counters().no_room, flood - backlog);

	other->on_event = [](End &, const ib_cm_event &) { return 1; };
	ASSERT_EQ(ib_cm_listen(other->id, service + 1, u64{0}), 0);
	ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn, service + 1), 0);
	EXPECT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));
	EXPECT_EQ(pair->listener.running.load_acquire(), turns);

	/* Each request is delivered in turn. */
	held.store_release(false);
	EXPECT_TRUE(eventually(
		[&] { return pair->listener.delivered(IB_CM_REQ_RECEIVED) == backlog; }));
}

/*
 * The messages of destroyed IDs still count against the limit until they have been sent. A consumer
 * that creates and destroys IDs in a loop therefore cannot exceed it. Afterwards a connection
 * succeeds.
 */
void cm_08_number_of_unsent_messages_of_destroyed_ids_is_limited(Test &test)
{
	constexpr unsigned int most = 4096, flood = most + 1000;
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	soft_hold_datagrams(pair->a.device(), true);
	unsigned int sent = 0, refused = 0;
	for (unsigned int n = 0; n < flood; n++) {
		Boxed<End> one;
		if (!one->open(pair->a))
			break;
		const int asked = one->request(pair->a, pair->b, 0x1000 + n);
		sent += asked == 0;
		refused += asked == -ENOBUFS;
	}
	EXPECT_EQ(sent + refused, flood);
	/* Each REQ that was sent is also followed by the message that ends its ID. */
	EXPECT_EQ(sent, most / 2);
	EXPECT_EQ(pair->a.counters().no_room, u64{refused});
	soft_hold_datagrams(pair->a.device(), false);
	EXPECT_TRUE(eventually([&] { return pair->active.request(pair->a, pair->b) == 0; }));
	EXPECT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
}

/* Whatever numbers peers choose, a lookup among ten thousand IDs compares only a few. */
void cm_08_hash_chains_have_at_most_16_entries_whatever_ids_peers_choose(Test &test)
{
	struct Known {
		cm::PairTable<Known>::Link link{*this};
	};
	constexpr std::size_t count = 10'000;
	auto made = kern::make_array<kern::Owned<Known>>(kern::Gfp::kernel, count);
	ASSERT_OK(made);
	const auto all = made.take();
	for (auto &known : all) {
		auto one = kern::make<Known>(kern::Gfp::kernel);
		ASSERT_OK(one);
		known = one.take();
	}
	const struct {
		u32 (*number)(std::size_t i);
		u64 (*guid)(std::size_t i);
	} choices[] = {
		{[](std::size_t i) { return static_cast<u32>(i); },
		 [](std::size_t) { return u64{1}; }},
		{[](std::size_t i) { return static_cast<u32>(i << 18); },
		 [](std::size_t i) { return static_cast<u64>(i >> 14); }},
		{[](std::size_t) { return 7u; },
		 [](std::size_t i) { return static_cast<u64>(i) << 48; }},
	};
	for (const auto &choice : choices) {
		cm::PairTable<Known> table;
		for (std::size_t i = 0; i < count; i++)
			ASSERT_OK(table.insert(all[i]->link, choice.number(i), choice.guid(i)));
		EXPECT_LE(table.longest(), 16u);
		bool right = true;
		for (std::size_t i = 0; i < count; i++)
			right = right &&
				table.find(choice.number(i), choice.guid(i)) == all[i].get();
		EXPECT_TRUE(right);
		EXPECT_TRUE(table.find(0xffffffff, 3) == nullptr);
		for (const auto &known : all)
			table.erase(known->link);
		EXPECT_EQ(table.longest(), 0u);
	}
}

} // namespace

CARD_SUITE(cm_listen,
	   KUNIT_CASE(cm_08_req_reaches_the_listener_of_its_service_id_among_1000_listeners),
	   KUNIT_CASE(cm_08_ib_cm_listen_rejects_service_ids_that_are_invalid_or_in_use),
	   KUNIT_CASE(cm_08_listener_with_the_most_specific_mask_gets_the_request),
	   KUNIT_CASE(cm_08_flood_of_reqs_does_not_exceed_the_listen_backlog),
	   KUNIT_CASE(cm_08_listener_with_a_blocked_handler_does_not_delay_other_listeners),
	   KUNIT_CASE(cm_08_number_of_unsent_messages_of_destroyed_ids_is_limited),
	   KUNIT_CASE(cm_08_hash_chains_have_at_most_16_entries_whatever_ids_peers_choose));
