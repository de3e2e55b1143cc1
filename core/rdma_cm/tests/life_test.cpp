// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that IDs may be destroyed, and devices removed, while handlers run.
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

/*
 * A handler that returns a nonzero value destroys its ID. -ENOMEM destroys a new ID without a
 * message, so that the peer retries.
 */
void rcm_11_handler_that_returns_nonzero_destroys_its_id(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	End &end = pair->active;
	end.on_event = [](End &, const rdma_cm_event &event) {
		return event.event == RDMA_CM_EVENT_ADDR_RESOLVED ? 1 : 0;
	};
	const Address to = ipv4(2, Pair::port);
	ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(end.id == nullptr);

	end.on_event = nullptr;
	end.close();
	ASSERT_TRUE(end.open() && pair->request());
	pair->passive.on_event = [](End &, const rdma_cm_event &event) {
		return event.event == RDMA_CM_EVENT_ESTABLISHED ? 1 : 0;
	};
	ASSERT_EQ(pair->passive.accept(), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_CONNECT_RESPONSE));
	ASSERT_EQ(end.accept(), 0);
	/* Destroying the ID closes the connection. */
	EXPECT_TRUE(end.receives(RDMA_CM_EVENT_DISCONNECTED));
	EXPECT_TRUE(pair->passive.id == nullptr);
}

/* After -ENOMEM a request is not rejected, so that the peer retries. */
void rcm_11_no_rej_is_sent_if_the_connect_request_handler_returns_enomem(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	pair->listener.fresh = nullptr;
	pair->listener.on_event = [](End &, const rdma_cm_event &) { return -ENOMEM; };
	ASSERT_TRUE(pair->active.resolve(ipv4(2, Pair::port)));
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(pair->listener.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	ib_cm_counters counters{};
	/*
	 * If it sent anything, that would precede its answer to the next request: one from another
	 * id, which is refused.
	 */
	pair->listener.on_event = [](End &, const rdma_cm_event &) { return -EPERM; };
	End other;
	ASSERT_TRUE(other.open() && other.resolve(ipv4(2, Pair::port)));
	ASSERT_EQ(other.connect(0x777), 0);
	ASSERT_TRUE(other.receives(RDMA_CM_EVENT_REJECTED));
	ASSERT_EQ(ib_cm_query_counters(pair->b.device(), 1, &counters), 0);
	EXPECT_EQ(counters.sent[IB_CM_COUNTER_REJ], 1u);
	EXPECT_EQ(pair->active.delivered(RDMA_CM_EVENT_REJECTED), 0u);
}

/* Destroys an ID in a separate task. */
struct Destroyer {
	rdma_cm_id *id;
	kern::Completion done;
	explicit Destroyer(rdma_cm_id *which) : id(which) {}
	int run()
	{
		rdma_destroy_id(id);
		done.complete();
		return 0;
	}
};

/*
 * rdma_destroy_id() waits for the handler of the ID and, for a listener, for the handler of a new
 * ID.
 */
void rcm_12_id_destroy_waits_for_running_handlers(Test &test)
{
	static constinit kern::Atomic<bool> held{};
	for (bool of_listener : {false, true}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->ok());
		held.store_release(true);
		const auto hold = [](End &, const rdma_cm_event &) {
			eventually([] { return !held.load_acquire(); });
			return 0;
		};
		rdma_cm_id *id;
		if (of_listener) {
			ASSERT_TRUE(pair->active.resolve(ipv4(2, Pair::port)));
			pair->passive.on_event = hold;
			ASSERT_EQ(pair->active.connect(), 0);
			ASSERT_TRUE(eventually(
				[&] { return pair->passive.running.load_acquire() == 1; }));
			id = std::exchange(pair->listener.id, nullptr);
		} else {
			pair->active.on_event = hold;
			const Address to = ipv4(2, Pair::port);
			ASSERT_EQ(rdma_resolve_addr(pair->active.id, nullptr, &to, 1000), 0);
			ASSERT_TRUE(eventually(
				[&] { return pair->active.running.load_acquire() == 1; }));
			id = std::exchange(pair->active.id, nullptr);
		}
		Destroyer destroyer(id);
		auto thread = kern::Thread::create("rdma_cm_test", kern::method<&Destroyer::run>,
						   &destroyer);
		ASSERT_OK(thread);
		/* Long enough to get there, if it did not wait. */
		EXPECT_FALSE(destroyer.done.wait_for(200));
		held.store_release(false);
		EXPECT_TRUE(destroyer.done.wait_for(60'000));
		EXPECT_EQ(pair->active.running.load_acquire() +
				  pair->passive.running.load_acquire(),
			  0u);
	}
}

/*
 * While the handler lock is held no event is delivered; pending events follow when it is released.
 */
void rcm_12_no_event_is_delivered_while_the_handler_lock_is_held(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->stand());
	End &end = pair->active;
	const Address to = ipv4(2, Pair::port);
	kern::Completion never;
	rdma_lock_handler(end.id);
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), 0);
	EXPECT_FALSE(never.wait_for(200));
	EXPECT_EQ(end.all(), 0u);
	rdma_unlock_handler(end.id);
	EXPECT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
}

/*
 * Both sides and the listener are destroyed at times and in an order that the seed determines,
 * during resolution and connection.
 */
void rcm_12_ids_can_be_destroyed_while_they_connect(Test &test)
{
	kern::SeededRandom random(test.seed());
	for (int round = 0; round < 20; round++) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->ok());
		pair->passive.on_event = [](End &end, const rdma_cm_event &event) {
			const auto param = End::param(0x456, "reply");
			return event.event == RDMA_CM_EVENT_CONNECT_REQUEST
				       ? rdma_accept(end.id, &param)
				       : 0;
		};
		pair->active.on_event = [](End &end, const rdma_cm_event &event) {
			const auto param = End::param(0x123, "request");
			switch (event.event) {
			case RDMA_CM_EVENT_ADDR_RESOLVED:
				(void)rdma_resolve_route(end.id, 1000);
				break;
			case RDMA_CM_EVENT_ROUTE_RESOLVED:
				(void)rdma_connect_locked(end.id, &param);
				break;
			case RDMA_CM_EVENT_CONNECT_RESPONSE:
				(void)rdma_accept(end.id, nullptr);
				break;
			default:
				break;
			}
			return 0;
		};
		const Address to = ipv4(2, Pair::port);
		ASSERT_EQ(rdma_resolve_addr(pair->active.id, nullptr, &to, 1000), 0);
		const u32 first = random.below(3);
		for (u32 step = 0; step < 3; step++) {
			kern::sleep_us(1, 1 + random.below(1500));
			switch ((first + step) % 3) {
			case 0:
				/* Its handler may be running. */
				rdma_destroy_id(pair->active.id);
				pair->active.id = nullptr;
				break;
			case 1:
				pair->listener.close();
				break;
			default:
				/*
				 * Its handler may be passing it to the test at this moment; then
				 * the pair closes it.
				 */
				if (pair->passive.delivered(RDMA_CM_EVENT_CONNECT_REQUEST))
					pair->passive.close();
				break;
			}
		}
		EXPECT_EQ(pair->active.overlaps.load_acquire() +
				  pair->passive.overlaps.load_acquire(),
			  0u);
	}
}

/*
 * A listener that is destroyed while its request is being handled blocks no other: the next one on
 * the port can listen at once and receives requests.
 */
void rcm_08_address_of_a_listener_being_destroyed_can_be_reused(Test &test)
{
	Boxed<Pair> pair;
	Boxed<Ends<2>> two;
	ASSERT_TRUE(pair.there() && two.there() && pair->stand() && pair->listen(ipv4(1)));
	auto &[next, asking] = two->ends;
	const Address beside = ipv4(2, Pair::port);
	Addresses &addresses = pair->ground.addresses;
	ASSERT_TRUE(pair->active.resolve(ipv4(1, Pair::port)) && asking.open() &&
		    asking.resolve(beside));
	ASSERT_TRUE(next.open());
	ASSERT_EQ(rdma_bind_addr(next.id, &beside), 0);
	addresses.holding.store_release(true);
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(eventually([&] { return addresses.held.load_acquire() == 1; }));
	Destroyer destroyer(std::exchange(pair->listener.id, nullptr));
	auto thread =
		kern::Thread::create("rdma_cm_test", kern::method<&Destroyer::run>, &destroyer);
	ASSERT_OK(thread);
	/* The removal waits, and the removal of the other device is queued behind it. */
	EXPECT_FALSE(destroyer.done.wait_for(200));
	EXPECT_EQ(rdma_listen(next.id, 1), 0);
	addresses.holding.store_release(false);
	EXPECT_TRUE(destroyer.done.wait_for(60'000));
	EXPECT_TRUE(pair->active.receives(RDMA_CM_EVENT_REJECTED));
	next.fresh = &pair->passive;
	ASSERT_EQ(asking.connect(0x124), 0);
	EXPECT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
}

/*
 * Device removal: every ID on the device is notified once, as its last event; removal waits for
 * their destruction; wildcard listeners stay.
 */
void rcm_13_device_removal_is_the_last_event_of_an_id(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	static constexpr auto leave = [](End &, const rdma_cm_event &event) {
		return event.event == RDMA_CM_EVENT_DEVICE_REMOVAL ? 1 : 0;
	};
	auto made = kern::make<Node>(kern::Gfp::kernel, u16{3});
	ASSERT_OK(made);
	auto node = made.take();
	pair->ground.addresses.add(*node, 3);
	Boxed<Ends<4>> four;
	ASSERT_TRUE(four.there());
	auto &[bound, listening, resolved, any] = four->ends;
	bound.on_event = listening.on_event = resolved.on_event = leave;
	Address own = ipv4(3), to = ipv4(2, Pair::port);
	ASSERT_TRUE(bound.open() && listening.open() && resolved.open() && any.open());
	ASSERT_EQ(rdma_bind_addr(bound.id, &own), 0);
	ASSERT_EQ(rdma_bind_addr(listening.id, &own), 0);
	ASSERT_EQ(rdma_listen(listening.id, 1), 0);
	ASSERT_EQ(rdma_resolve_addr(resolved.id, &own, &to, 1000), 0);
	ASSERT_TRUE(resolved.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	ASSERT_EQ(rdma_listen(any.id, 1), 0);
	node.reset();
	EXPECT_EQ(bound.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL), 1u);
	EXPECT_EQ(listening.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL), 1u);
	EXPECT_EQ(resolved.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL), 1u);
	EXPECT_EQ(bound.all() + listening.all() + resolved.all(), 4u);
	EXPECT_EQ(any.all(), 0u);
	EXPECT_EQ(any.state(), State::listen);
	EXPECT_EQ(pair->listener.state(), State::listen);
	/* The other devices are as they were. */
	EXPECT_TRUE(pair->establish());
}

/* Device removal waits for a consumer that keeps its ID for a while. */
void rcm_13_device_removal_waits_until_ids_are_destroyed(Test &test)
{
	struct Going {
		kern::Owned<Node> node;
		kern::Completion done;
		int run()
		{
			node.reset();
			done.complete();
			return 0;
		}
	} going;
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	auto made = kern::make<Node>(kern::Gfp::kernel, u16{3});
	ASSERT_OK(made);
	going.node = made.take();
	pair->ground.addresses.add(*going.node, 3);
	End end;
	const Address own = ipv4(3), to = ipv4(2, Pair::port);
	ASSERT_TRUE(end.open());
	ASSERT_EQ(rdma_bind_addr(end.id, &own), 0);
	auto thread = kern::Thread::create("rdma_cm_test", kern::method<&Going::run>, &going);
	ASSERT_OK(thread);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_DEVICE_REMOVAL));
	EXPECT_EQ(end.state(), State::device_removal);
	EXPECT_FALSE(going.done.wait_for(200));
	EXPECT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 1000), -EINVAL);
	end.close();
	EXPECT_TRUE(going.done.wait_for(60'000));
}

/* Each side continues as soon as possible. A side whose device is removed destroys its ID. */
int go_on(End &end, const rdma_cm_event &event)
{
	const auto request = End::param(0x123, "request"), reply = End::param(0x456, "reply");
	switch (event.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		(void)rdma_resolve_route(end.id, 1000);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		(void)rdma_connect_locked(end.id, &request);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return rdma_accept(end.id, &reply);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		(void)rdma_accept(end.id, nullptr);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return 1;
	default:
		return 0;
	}
}

/*
 * The device of either side is removed at a moment that the seed determines: its IDs get the event
 * once, and no event after it.
 */
void rcm_13_device_can_be_removed_while_ids_connect(Test &test)
{
	kern::SeededRandom random(test.seed());
	for (int round = 0; round < 20; round++) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.there() && pair->stand());
		auto made = kern::make<Node>(kern::Gfp::kernel, u16{3});
		ASSERT_OK(made);
		auto node = made.take();
		pair->third = node.get();
		pair->ground.addresses.add(*node, 3);
		const bool asked = round % 2;
		const Address there = asked ? ipv4(3) : ipv4(2), from = asked ? ipv4(1) : ipv4(3),
			      to = asked ? ipv4(3, Pair::port) : ipv4(2, Pair::port);
		for (End *end : {&pair->active, &pair->listener, &pair->passive})
			end->on_event = go_on;
		ASSERT_TRUE(pair->listen(there));
		ASSERT_EQ(rdma_resolve_addr(pair->active.id, &from, &to, 1000), 0);
		kern::sleep_us(1, 1 + random.below(3000));
		node.reset();
		EXPECT_EQ(pair->active.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL), asked ? 0u : 1u);
		EXPECT_EQ(pair->listener.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL), asked ? 1u : 0u);
		const bool began = pair->passive.delivered(RDMA_CM_EVENT_CONNECT_REQUEST);
		EXPECT_EQ(pair->passive.delivered(RDMA_CM_EVENT_DEVICE_REMOVAL),
			  asked && began ? 1u : 0u);
		EXPECT_TRUE((asked ? pair->listener : pair->active).id == nullptr);
		EXPECT_EQ(pair->active.overlaps.load_acquire() +
				  pair->passive.overlaps.load_acquire(),
			  0u);
		pair->third = nullptr;
	}
}

/* Removes a device in a separate task. */
struct Remover {
	ib_device &device;
	kern::Completion done;
	explicit Remover(ib_device &which) : device(which) {}
	int run()
	{
		rdma_cm::Manager::get().remove(device);
		done.complete();
		return 0;
	}
};

/*
 * The device is removed and the listener destroyed while a request is being processed: the objects
 * that it uses exist until then.
 */
void rcm_13_listener_is_not_freed_while_a_request_is_processed(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	Addresses &addresses = pair->ground.addresses;
	ASSERT_TRUE(pair->active.resolve(ipv4(2, Pair::port)));
	addresses.holding.store_release(true);
	ASSERT_EQ(pair->active.connect(), 0);
	ASSERT_TRUE(eventually([&] { return addresses.held.load_acquire() == 1; }));
	Remover remover(*pair->b.device());
	auto thread = kern::Thread::create("rdma_cm_test", kern::method<&Remover::run>, &remover);
	ASSERT_OK(thread);
	/* Wait until the removal has taken the device's listener from the service. */
	EXPECT_TRUE(eventually([] {
		End end;
		const Address there = ipv4(2);
		return end.open() && rdma_bind_addr(end.id, &there) == -ENODEV;
	}));
	pair->listener.close();
	EXPECT_FALSE(remover.done.done());
	addresses.holding.store_release(false);
	EXPECT_TRUE(remover.done.wait_for(60'000));
	EXPECT_TRUE(pair->active.receives(RDMA_CM_EVENT_REJECTED));
}

} // namespace

SOFT_SUITES(rdma_cm_life, KUNIT_CASE(rcm_11_handler_that_returns_nonzero_destroys_its_id),
	    KUNIT_CASE(rcm_11_no_rej_is_sent_if_the_connect_request_handler_returns_enomem),
	    KUNIT_CASE(rcm_12_id_destroy_waits_for_running_handlers),
	    KUNIT_CASE(rcm_12_no_event_is_delivered_while_the_handler_lock_is_held),
	    KUNIT_CASE(rcm_12_ids_can_be_destroyed_while_they_connect),
	    KUNIT_CASE(rcm_08_address_of_a_listener_being_destroyed_can_be_reused),
	    KUNIT_CASE(rcm_13_device_removal_is_the_last_event_of_an_id),
	    KUNIT_CASE(rcm_13_device_removal_waits_until_ids_are_destroyed),
	    KUNIT_CASE(rcm_13_device_can_be_removed_while_ids_connect),
	    KUNIT_CASE(rcm_13_listener_is_not_freed_while_a_request_is_processed));
