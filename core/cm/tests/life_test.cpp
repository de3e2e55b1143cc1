// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that IDs may be destroyed while handlers run, and that random bytes from a peer do no harm.
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

/*
 * A handler that returns a nonzero value destroys its ID. -ENOMEM destroys a new ID without a
 * message, so that the peer retries.
 */
void cm_07_handler_that_returns_nonzero_destroys_its_id(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	pair->passive.on_event = [](End &, const ib_cm_event &event) {
		return event.event == IB_CM_REQ_RECEIVED ? -ENOMEM : 0;
	};
	ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
	pair->passive.on_event = nullptr;
	pair->listener.fresh = &pair->passive;
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED, 2));
	EXPECT_EQ(pair->active.delivered(IB_CM_REJ_RECEIVED), 0u);
	EXPECT_EQ(pair->b.counters().sent[IB_CM_COUNTER_REJ], 0u);
	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));
	ASSERT_EQ(ib_send_cm_rtu(pair->active.id, nullptr, 0), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_RTU_RECEIVED));

	pair->passive.on_event = [](End &, const ib_cm_event &event) {
		return event.event == IB_CM_DREQ_RECEIVED ? 1 : 0;
	};
	ASSERT_EQ(ib_send_cm_dreq(pair->active.id, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_DREP_RECEIVED));
	EXPECT_TRUE(pair->passive.id == nullptr);
}

/*
 * Destruction is silent only while the peer has no response: a peer that has received a REP or MRA
 * gets a REJ.
 */
void cm_07_handler_that_returns_enomem_causes_a_rej_if_it_has_sent_a_rep_or_mra(Test &test)
{
	for (bool replies : {true, false}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.ok());
		pair->passive.on_event = replies ? [](End &end, const ib_cm_event &event) {
			return event.event == IB_CM_REQ_RECEIVED && end.reply() == 0 ? -ENOMEM : 0;
		} : [](End &end, const ib_cm_event &event) {
			return event.event == IB_CM_REQ_RECEIVED && ib_send_cm_mra(end.id, 20, nullptr, 0) == 0 ? -ENOMEM : 0;
		};
		ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
		ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
		EXPECT_TRUE(eventually(
			[&] { return pair->b.counters().sent[IB_CM_COUNTER_REJ] == 1; }));
		ASSERT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED));
		EXPECT_EQ(pair->active.last.param.rej_rcvd.reason, IB_CM_REJ_CONSUMER_DEFINED);
	}
	/* The same holds for a SIDR request: it is retried. */
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	pair->passive.on_event = [](End &, const ib_cm_event &) { return -ENOMEM; };
	const sa_path_rec path = pair->a.path_to(pair->b);
	ib_cm_sidr_req_param param{};
	param.path = &path;
	param.service_id = service;
	param.timeout_ms = 1000;
	param.max_cm_retries = 15;
	ASSERT_EQ(ib_send_cm_sidr_req(pair->active.id, &param), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_SIDR_REQ_RECEIVED));
	pair->passive.on_event = nullptr;
	pair->listener.fresh = &pair->passive;
	EXPECT_TRUE(pair->passive.receives(IB_CM_SIDR_REQ_RECEIVED, 2));
	EXPECT_EQ(pair->b.counters().sent[IB_CM_COUNTER_SIDR_REP], 0u);
}

/* Destroys an ID in a separate task. */
struct Destroyer {
	ib_cm_id *id;
	kern::Completion done;
	explicit Destroyer(ib_cm_id *which) : id(which) {}
	int run()
	{
		ib_destroy_cm_id(id);
		done.complete();
		return 0;
	}
};

/*
 * ib_destroy_cm_id() waits for the handler of the ID and, for a listener, for the handlers of new
 * IDs.
 */
void cm_07_id_destroy_waits_for_running_handlers(Test &test)
{
	static constinit kern::Atomic<bool> held{};
	for (bool of_listener : {false, true}) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.ok());
		held.store_release(true);
		const auto hold = [](End &, const ib_cm_event &) {
			eventually([] { return !held.load_acquire(); });
			return 0;
		};
		ib_cm_id *id;
		if (of_listener) {
			pair->passive.on_event = hold;
			ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
			ASSERT_TRUE(eventually(
				[&] { return pair->passive.running.load_acquire() == 1; }));
			id = std::exchange(pair->listener.id, nullptr);
		} else {
			pair->active.on_event = hold;
			ASSERT_TRUE(pair->request());
			ASSERT_EQ(pair->passive.reply(), 0);
			ASSERT_TRUE(eventually(
				[&] { return pair->active.running.load_acquire() == 1; }));
			id = std::exchange(pair->active.id, nullptr);
		}
		Destroyer destroyer(id);
		auto thread =
			kern::Thread::create("cm_test", kern::method<&Destroyer::run>, &destroyer);
		ASSERT_OK(thread);
		/* This is long enough for destroy() to return if it did not wait. */
		EXPECT_FALSE(destroyer.done.wait_for(500));
		held.store_release(false);
		EXPECT_TRUE(destroyer.done.wait_for(60'000));
		EXPECT_EQ(pair->active.running.load_acquire() +
				  pair->passive.running.load_acquire(),
			  0u);
	}
}

/* Removes a node in a separate task. */
struct Leaver {
	Node &node;
	kern::Completion done;
	explicit Leaver(Node &which) : node(which) {}
	int run()
	{
		node.leave();
		done.complete();
		return 0;
	}
};

/*
 * A listener whose handler destroys it when the device is removed exists until the handler of a new
 * ID, whose events point to the listener, has returned.
 */
void cm_07_listener_is_not_freed_before_handlers_of_new_ids_return(Test &test)
{
	static constinit kern::Atomic<bool> held{};
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	held.store_release(true);
	pair->passive.on_event = [](End &, const ib_cm_event &event) {
		if (event.event == IB_CM_REQ_RECEIVED)
			eventually([] { return !held.load_acquire(); });
		return 0;
	};
	pair->listener.on_event = [](End &, const ib_cm_event &event) {
		return event.event == IB_CM_DEVICE_REMOVAL ? 1 : 0;
	};
	ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
	ASSERT_TRUE(eventually([&] { return pair->passive.running.load_acquire() == 1; }));
	Leaver leaver(pair->b);
	auto thread = kern::Thread::create("cm_test", kern::method<&Leaver::run>, &leaver);
	ASSERT_OK(thread);
	EXPECT_TRUE(pair->listener.receives(IB_CM_DEVICE_REMOVAL));
	/* This is long enough for the listener to be freed if nothing waited for the handler. */
	kern::sleep_ms(500);
	held.store_release(false);
	EXPECT_TRUE(leaver.done.wait_for(60'000));
	EXPECT_TRUE(pair->passive.receives(IB_CM_DEVICE_REMOVAL));
}

/*
 * Both sides and the listener are destroyed at times and in an order that the seed determines,
 * while messages are in flight.
 */
void cm_07_ids_can_be_destroyed_while_messages_are_in_flight(Test &test)
{
	kern::SeededRandom random(test.seed());
	for (int round = 0; round < 30; round++) {
		Boxed<Pair> pair;
		ASSERT_TRUE(pair.ok());
		pair->passive.on_event = [](End &end, const ib_cm_event &event) {
			return event.event == IB_CM_REQ_RECEIVED ? end.reply() : 0;
		};
		pair->active.on_event = [](End &end, const ib_cm_event &event) {
			return event.event == IB_CM_REP_RECEIVED
				       ? ib_send_cm_rtu(end.id, nullptr, 0)
				       : 0;
		};
		ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
		const u32 first = random.below(3);
		for (u32 step = 0; step < 3; step++) {
			kern::sleep_us(1, 1 + random.below(300));
			switch ((first + step) % 3) {
			case 0:
				pair->active.close();
				break;
			case 1:
				pair->listener.close();
				break;
			default:
				/*
				 * The handler may be passing the new ID to this End at this moment.
				 * The destructor of the pair closes it in that case.
				 */
				if (pair->passive.delivered(IB_CM_REQ_RECEIVED))
					pair->passive.close();
				break;
			}
		}
		pair->listener.close();
		EXPECT_EQ(pair->active.overlaps.load_acquire() +
				  pair->passive.overlaps.load_acquire(),
			  0u);
	}
}

/*
 * Random messages, and valid messages with some bytes changed: an existing connection and a
 * listener continue to work.
 */
void cm_01_listener_accepts_a_connection_after_random_cm_messages(Test &test)
{
	Boxed<Pair> pair;
	Boxed<UnknownPeer> peer(u16{3});
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(peer->open());
	ASSERT_TRUE(pair->connect());
	pair->listener.on_event = [](End &, const ib_cm_event &) { return 1; };
	kern::SeededRandom random(test.seed());
	for (int n = 0; n < 800; n++) {
		auto mad = peer->make_req(pair->b, 1 + random.below(4), 1 + random.below(4));
		if (random.below(4)) {
			mad = UnknownPeer::make(
				static_cast<ib::CmAttribute>(0x0f + random.below(14)),
				random.below(4),
				random.below(2) ? pair->passive.id->local_id.value()
						: random.below(4));
			for (unsigned i = 8; i < sizeof(mad.data); i++)
				mad.data[i] = static_cast<u8>(random.next());
		}
		for (u32 changes = random.below(5); changes > 0; changes--)
			mad.data[random.below(sizeof(mad.data))] = static_cast<u8>(random.next());
		ASSERT_TRUE(peer->says(pair->b, mad));
	}
	pair->active.close();
	pair->passive.close();
	/*
	 * Closing the listener also destroys the IDs of all REQs that the independent peer has
	 * sent.
	 */
	pair->listener.close();
	pair->listener.on_event = nullptr;
	pair->listener.fresh = &pair->passive;
	ASSERT_TRUE(pair->active.open(pair->a) && pair->listener.open(pair->b));
	ASSERT_EQ(ib_cm_listen(pair->listener.id, service, u64{0}), 0);
	ASSERT_EQ(pair->active.request(pair->a, pair->b, some_qpn + 9), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
	ASSERT_EQ(pair->passive.reply(other_qpn + 9), 0);
	EXPECT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));
}

} // namespace

SOFT_SUITES(cm_life, KUNIT_CASE(cm_07_handler_that_returns_nonzero_destroys_its_id),
	    KUNIT_CASE(cm_07_handler_that_returns_enomem_causes_a_rej_if_it_has_sent_a_rep_or_mra),
	    KUNIT_CASE(cm_07_id_destroy_waits_for_running_handlers),
	    KUNIT_CASE(cm_07_listener_is_not_freed_before_handlers_of_new_ids_return),
	    KUNIT_CASE(cm_07_ids_can_be_destroyed_while_messages_are_in_flight),
	    KUNIT_CASE(cm_01_listener_accepts_a_connection_after_random_cm_messages));
