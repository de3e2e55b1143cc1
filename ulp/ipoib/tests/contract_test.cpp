// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that an interface obeys the midlayer's rules for its users: it polls again if arming
// reports missed events, and destroys no address handle that a request still uses.
#include <kern/rcu.hpp>
#include "fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

/* Lets half a minute pass for a table without waiting. */
namespace ipoib
{
struct TimePasses {
	static void on(Interface &interface) { interface.run_periodic(); }
};
} // namespace ipoib

namespace
{

/*
 * Bursts whose completions arrive after the last poll and before the arm are all received, and all
 * sent packets are completed.
 */
void notify_09_datagrams_that_arrive_between_poll_and_arm_are_received(Test &test)
{
	constexpr unsigned rounds = 30, length = 1000;
	for (const soft_notify notify : {SOFT_NOTIFY_FIRES, SOFT_NOTIFY_REPORTS}) {
		/*
		 * Events are handled some time after they were raised, so that completions can
		 * arrive in between.
		 */
		Pair pair(notify, SOFT_TASK);
		ASSERT_TRUE(pair.ok());
		ASSERT_TRUE(pair.begin());
		InTheWindow window(pair);
		kern::SeededRandom random(test.seed());
		const auto doorbells = [&] { return pair.a.counter("tx_doorbells"); };
		unsigned by_itself = 0;
		for (unsigned round = 0; round < rounds; round++) {
			const u64 received = pair.b.stats().rx_bytes;
			const u64 missed = pair.a.counter("tx_rearms_missed");
			/*
			 * Only few packets are in flight at once, regardless of the byte limit of
			 * the network stack.
			 */
			const unsigned count = round % 2 ? 2 : 1 + random.below(8);
			soft_hold_datagrams(pair.a.device(), true);
			for (unsigned i = 0; i < count; i++)
				EXPECT_TRUE(pair.a.send(pair.b, length));
			const u64 rung = doorbells();
			soft_hold_datagrams(pair.a.device(), false);
			ASSERT_TRUE(eventually([&] {
				return pair.b.stats().rx_bytes >= received + u64{count} * length;
			}));
			/*
			 * The device copies nothing into its requests, so the last request of each
			 * doorbell raises a completion.
			 */
			ASSERT_TRUE(eventually(
				[&] { return pair.a.counter("tx_completions") == doorbells(); }));
			/*
			 * Later packets, including those of the stack itself, cause another event,
			 * by which missed completions would be found as well.
			 */
			if (pair.a.counter("tx_rearms_missed") > missed && doorbells() == rung)
				by_itself++;
		}
		/* Such hardware has reported missed events many times. */
		if (notify == SOFT_NOTIFY_REPORTS) {
			EXPECT_GT(pair.b.counter("rx_rearms_missed"), 0u);
			EXPECT_GT(by_itself, 0u);
		}
	}
}

/* Returns a number that increases each time the interface restarts its queues. */
unsigned long restarts(const Host &host)
{
	return soft_calls(host.device(), SOFT_MODIFY_QP);
}

/* The interface restarts its queues, and packets get through afterwards. */
bool recovers(const Pair &pair, const Host &host, unsigned long before)
{
	if (!eventually([&] { return restarts(host) > before; }))
		return false;
	{
		/* A restart holds the lock from beginning to end. */
		kern::RtnlGuard rtnl;
	}
	return pair.a.runs() && pair.b.runs() && pair.a.reaches(pair.b);
}

/*
 * If the CQ of a receive queue cannot be armed, there is no event to wait for: the interface
 * restarts the queue. If the CQ cannot be armed then either, the interface waits and tries again.
 */
void notify_02_receive_queue_is_restarted_after_arming_its_cq_fails(Test &test)
{
	for (const unsigned failures : {1u, 2u}) {
		Pair pair;
		ASSERT_TRUE(pair.ok());
		ASSERT_TRUE(pair.begin());
		const unsigned long before = restarts(pair.b);
		soft_fail_arms(pair.b.interface().qp()->recv_cq, failures, -EIO);
		EXPECT_TRUE(pair.a.send(pair.b));
		EXPECT_TRUE(recovers(pair, pair.b, before));
	}
}

/* A transmit queue recovers as well, and its sent packets are completed. */
void notify_02_transmit_queue_is_restarted_after_arming_its_cq_fails(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	{
		/* All packets use one queue, whichever CPU sends them. */
		kern::RtnlGuard rtnl;
		ASSERT_EQ(kern_netdev_use_tx_queues(pair.a.dev(), 1), 0);
	}
	ASSERT_TRUE(pair.a.reaches(pair.b));
	const unsigned long before = restarts(pair.a);
	soft_fail_arms(pair.a.interface().qp()->send_cq, 1, -EIO);
	EXPECT_TRUE(pair.a.send(pair.b));
	EXPECT_TRUE(recovers(pair, pair.a, before));
	EXPECT_TRUE(eventually([&] {
		return pair.a.counter("tx_completions") == pair.a.counter("tx_doorbells");
	}));
}

/* An interface whose CQ cannot be armed does not open, and can be opened later. */
void notify_02_interface_open_fails_if_its_send_or_receive_cq_cannot_be_armed(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	for (const bool sends : {false, true}) {
		ib_qp *const qp = pair.a.interface().qp();
		soft_fail_arms(sends ? qp->send_cq : qp->recv_cq, 1, -EIO);
		EXPECT_EQ(pair.a.up(), -EIO);
		EXPECT_EQ(pair.a.interface().state(), Interface::State::down);
	}
	EXPECT_TRUE(pair.begin());
}

constexpr unsigned some = 8;

/*
 * An interface whose addresses become invalid removes its destinations, but does not destroy
 * address handles that outstanding sends use.
 */
void address_handle_is_not_destroyed_before_its_sends_complete(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	soft_hold_datagrams(pair.a.device(), true);
	for (unsigned i = 0; i < some; i++)
		EXPECT_TRUE(pair.a.send(pair.b));
	const u64 before = pair.a.counter("path_queries");
	pair.a.interface().on_event(IB_EVENT_LID_CHANGE);
	EXPECT_TRUE(eventually([&] {
		(void)pair.a.send(pair.b);
		kern::sleep_ms(1);
		return pair.a.counter("path_queries") > before;
	}));
	kern::rcu::barrier();
	EXPECT_EQ(soft_addresses_lost(pair.a.device()), 0ul);
	soft_hold_datagrams(pair.a.device(), false);
	EXPECT_TRUE(pair.a.runs());
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

/* When the interface is brought down, all address handles are destroyed. */
void address_handles_are_freed_when_the_interface_goes_down(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ib_pd *const pd = pair.a.interface().qp()->pd;
	const int before = pd->usecnt;
	for (unsigned round = 0; round < 3; round++) {
		ASSERT_TRUE(pair.begin());
		EXPECT_GT(pd->usecnt, before);
		soft_hold_datagrams(pair.a.device(), true);
		for (unsigned i = 0; i < some; i++)
			EXPECT_TRUE(pair.a.send(pair.b));
		/* Pending RCU callbacks run before the QPs are moved to ERR. */
		soft_interpose(
			pair.a.device(), SOFT_MODIFY_QP, [](void *) { kern::rcu::barrier(); },
			nullptr);
		pair.a.down();
		soft_interpose(pair.a.device(), SOFT_MODIFY_QP, nullptr, nullptr);
		EXPECT_EQ(soft_addresses_lost(pair.a.device()), 0ul);
		EXPECT_EQ(pd->usecnt, before);
		soft_hold_datagrams(pair.a.device(), false);
	}
}

/*
 * A send-only group is kept while it is used. Then the interface leaves it, and its destination is
 * removed.
 */
void interface_leaves_an_idle_send_only_multicast_group(Test &test)
{
	constexpr unsigned rounds = 8;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	HardwareAddress group = pair.a.interface().broadcast();
	group.gid.raw[15] ^= 1;
	const auto send = [&] {
		return kern_kunit_netdev_send(pair.a.dev(), reinterpret_cast<const u8 *>(&group),
					      type_ipv4, 100) == 0;
	};
	const unsigned joins = pair.administrator.joins.load_relaxed();
	EXPECT_TRUE(send());
	ASSERT_TRUE(eventually([&] { return pair.administrator.joins.load_relaxed() > joins; }));
	for (unsigned round = 0; round < rounds; round++) {
		EXPECT_TRUE(send());
		TimePasses::on(pair.a.interface());
		kern::sleep_ms(1);
		EXPECT_TRUE(pair.a.interface().sends_to(group));
	}
	/* Groups to which the stack itself has sent are left by now. */
	kern::sleep_ms(100);
	const unsigned leaves = pair.administrator.leaves.load_relaxed();
	for (unsigned round = 0; round < rounds; round++)
		TimePasses::on(pair.a.interface());
	EXPECT_TRUE(eventually([&] { return pair.administrator.leaves.load_relaxed() > leaves; }));
	EXPECT_FALSE(pair.a.interface().sends_to(group));
}

/* A packet that ends within its header is dropped, whatever its source. */
void ipoib_09_truncated_packet_is_dropped(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	const auto send = [&](unsigned length) {
		return kern_kunit_netdev_send_cut(pair.a.dev(), pair.b.address(), type_ipv4,
						  length) == 0;
	};
	for (const unsigned length :
	     {0u, 1u, address_bytes - 1, address_bytes, hard_header_bytes - 1}) {
		ASSERT_TRUE(pair.a.reaches(pair.b));
		const u64 dropped = pair.a.stats().tx_dropped;
		EXPECT_TRUE(send(length));
		/* In addition to packets that the stack sends by itself. */
		EXPECT_GE(pair.a.stats().tx_dropped, dropped + 1);
	}
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

} // namespace

SOFT_SUITES(ipoib_contract, KUNIT_CASE(ipoib_09_truncated_packet_is_dropped),
	    KUNIT_CASE(notify_09_datagrams_that_arrive_between_poll_and_arm_are_received),
	    KUNIT_CASE(notify_02_receive_queue_is_restarted_after_arming_its_cq_fails),
	    KUNIT_CASE(notify_02_transmit_queue_is_restarted_after_arming_its_cq_fails),
	    KUNIT_CASE(notify_02_interface_open_fails_if_its_send_or_receive_cq_cannot_be_armed),
	    KUNIT_CASE(address_handle_is_not_destroyed_before_its_sends_complete),
	    KUNIT_CASE(address_handles_are_freed_when_the_interface_goes_down),
	    KUNIT_CASE(interface_leaves_an_idle_send_only_multicast_group));
