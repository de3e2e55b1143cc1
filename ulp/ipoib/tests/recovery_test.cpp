// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that interfaces recover after they have lost their queues, their memory or their device.
#include <kern/thread.hpp>
#include <rdma/driver.hpp>
#include "fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;
using ::fixture::runs_on_these_devices;

namespace
{

/*
 * Packets of all sizes use the whole data path, on a device that accesses memory by its DMA
 * mappings.
 */
void datagrams_of_all_sizes_arrive_without_errors(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	for (const unsigned length : {60u, 250u, 300u, 1500u, 2000u}) {
		const kern_net_stats before = pair.b.stats();
		constexpr unsigned count = 100;
		for (unsigned i = 0; i < count; i++)
			EXPECT_TRUE(pair.a.send(pair.b, length));
		/* Compares bytes, too: the stack sends packets of its own, which are small. */
		EXPECT_TRUE(eventually([&] {
			const kern_net_stats now = pair.b.stats();
			return now.rx_packets >= before.rx_packets + count &&
			       now.rx_bytes >= before.rx_bytes + u64{count} * length;
		}));
	}
	EXPECT_EQ(pair.b.stats().rx_errors, 0u);
}

/*
 * When unregistration returns, with the rtnl lock held, no object of the device is in use any more,
 * even if there are references to the interface.
 */
void queue_pairs_are_destroyed_before_netdev_unregistration_returns(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	const unsigned long before = soft_calls(pair.a.device(), SOFT_DESTROY_QP);
	kern::RtnlGuard rtnl;
	pair.a.release()->remove();
	EXPECT_GT(soft_calls(pair.a.device(), SOFT_DESTROY_QP), before);
}

/* New rings are in new memory, but the counters continue. Readers need no lock. */
void interface_counters_continue_after_ring_replacement(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	pair.b.down();
	const u64 before = pair.b.stats().rx_packets;
	struct Reader {
		const Host &host;
		kern::Atomic<unsigned> reads{};
		int run()
		{
			while (!kern::Thread::should_stop()) {
				(void)host.stats();
				reads.fetch_add(1);
				kern::sleep_us(10, 50);
			}
			return 0;
		}
	} reader{pair.b};
	auto thread = kern::Thread::create("ipoib-stats", kern::method<&Reader::run>, &reader);
	ASSERT_OK(thread);
	for (unsigned round = 0; round < 20; round++) {
		kern::RtnlGuard rtnl;
		EXPECT_EQ(netdev_ops.set_rings(&pair.b.interface(), 64u << round % 3, 128u), 0);
	}
	EXPECT_TRUE(eventually([&] { return reader.reads.load_relaxed() > 100; }));
	EXPECT_EQ(thread.take().stop(), 0);
	EXPECT_GE(pair.b.stats().rx_packets, before);
	EXPECT_EQ(pair.b.up(), 0);
	EXPECT_TRUE(pair.b.runs());
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

/*
 * If neither new rings nor the former ones can be allocated, the interface reports the former
 * sizes, and can be opened once there is memory.
 */
void failed_ring_allocation_does_not_change_the_ring_sizes(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	const auto rings_of = [](const Host &host) {
		kern_rings rings{};
		netdev_ops.get_rings(&host.interface(), &rings);
		return rings;
	};
	{
		kern::RtnlGuard rtnl;
		const kern_rings before = rings_of(pair.a);
		soft_fail(pair.a.device(), SOFT_CREATE_CQ, 1000, -ENOMEM);
		EXPECT_EQ(netdev_ops.set_rings(&pair.a.interface(), 128, 128), -ENOMEM);
		const kern_rings after = rings_of(pair.a);
		EXPECT_EQ(after.rx, before.rx);
		EXPECT_EQ(after.tx, before.tx);
		EXPECT_EQ(kern_kunit_netdev_up(pair.a.dev(), true), -ENOMEM);
		kern_coalesce rx{}, tx{};
		netdev_ops.get_coalesce(&pair.a.interface(), &rx, &tx);
		EXPECT_EQ(netdev_ops.set_coalesce(&pair.a.interface(), &rx, &tx), 0);
		soft_fail(pair.a.device(), SOFT_CREATE_CQ, 0, 0);
	}
	EXPECT_TRUE(pair.begin());
}

/*
 * A receiver without memory drops packets but keeps its buffers. If a QP has refused all of them,
 * they are posted again.
 */
void mgmt_12_receive_buffers_are_posted_again_after_a_memory_shortage(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	{
		kern::RtnlGuard rtnl;
		ASSERT_EQ(netdev_ops.set_rings(&pair.b.interface(), 64, 64), 0);
	}
	ASSERT_TRUE(pair.begin());
	const u64 dropped = pair.b.stats().rx_dropped;
	kern_fail_pages(true);
	EXPECT_TRUE(eventually([&] {
		(void)pair.a.send(pair.b, 2000);
		return pair.b.stats().rx_dropped > dropped + 200;
	}));
	kern_fail_pages(false);
	EXPECT_TRUE(pair.a.reaches(pair.b));

	soft_fail(pair.b.device(), SOFT_POST_RECV, 1'000'000, -ENOMEM);
	EXPECT_TRUE(eventually([&] {
		(void)pair.a.send(pair.b);
		return soft_posted_receives(pair.b.interface().qp()) == 0;
	}));
	soft_fail(pair.b.device(), SOFT_POST_RECV, 0, 0);
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

void dispatch(ib_event_type type, ib_qp *qp)
{
	if (type == IB_EVENT_CQ_ERR)
		rdma::dispatch(type, qp->recv_cq);
	else
		rdma::dispatch(type, qp);
}

ib_qp_state state_of(const Host &host)
{
	kern::RtnlGuard rtnl;
	ib_qp_attr attr{};
	ib_qp_init_attr init;
	return ib_query_qp(host.interface().qp(), &attr, IB_QP_STATE, &init) ? IB_QPS_ERR
									     : attr.qp_state;
}

/* A QP enters the error state and completes all of its requests. The interface recovers it. */
void mgmt_09_interface_recovers_its_qp_from_the_error_state(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	unsigned by_receives = 0;
	for (unsigned round = 0; round < 3 || (!by_receives && round < 20); round++) {
		ib_qp_attr attr{};
		attr.qp_state = IB_QPS_ERR;
		const u64 flushed_sends = pair.b.stats().tx_errors;
		ASSERT_EQ(ib_modify_qp(pair.b.interface().qp(), &attr, IB_QP_STATE), 0);
		ASSERT_TRUE(eventually([&] { return state_of(pair.b) == IB_QPS_RTS; }));
		/* A flushed send also reveals the error, and the stack sends from time to time. */
		by_receives += pair.b.stats().tx_errors == flushed_sends;
		EXPECT_TRUE(pair.a.reaches(pair.b));
	}
	EXPECT_GT(by_receives, 0u);
}

/*
 * A failed send stops only its send queue (SQE, IBA 10.3.1.6). One command restarts the queue, and
 * the requests after the failed one complete.
 */
void send_queue_in_the_sqe_state_is_restarted_with_one_modify_qp_call(Test &test)
{
	/*
	 * The packet is too long for any datagram. The stack observes the MTU, but a program that
	 * bypasses the stack need not.
	 */
	constexpr unsigned too_long = 5000, behind = 4;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	ib_device *const device = pair.a.device();
	{
		/* All packets use one queue, whichever CPU sends them. */
		kern::RtnlGuard rtnl;
		ASSERT_EQ(kern_netdev_use_tx_queues(pair.a.dev(), 1), 0);
	}
	for (unsigned round = 0; round < 3; round++) {
		const unsigned long before = soft_calls(device, SOFT_MODIFY_QP);
		const u64 errors = pair.a.stats().tx_errors;
		soft_hold_datagrams(device, true);
		EXPECT_TRUE(pair.a.send(pair.b, too_long));
		for (unsigned i = 0; i < behind; i++)
			EXPECT_TRUE(pair.a.send(pair.b));
		{
			/*
			 * Packets that the stack still holds, because of its byte limit or another
			 * CPU that sends, reach a queue that is stopped, too: it is not restarted
			 * before the lock is free.
			 */
			kern::RtnlGuard rtnl;
			soft_hold_datagrams(device, false);
			EXPECT_TRUE(eventually(
				[&] { return pair.a.stats().tx_errors >= errors + 1 + behind; }));
		}
		EXPECT_TRUE(
			eventually([&] { return soft_calls(device, SOFT_MODIFY_QP) > before; }));
		{
			kern::RtnlGuard rtnl;
		}
		EXPECT_EQ(soft_calls(device, SOFT_MODIFY_QP), before + 1);
		EXPECT_TRUE(pair.a.reaches(pair.b));
	}
	/* A packet that cannot be posted at all does not stop the queue. */
	const unsigned long before = soft_calls(device, SOFT_MODIFY_QP);
	soft_fail(device, SOFT_POST_SEND, 1, -EIO);
	EXPECT_TRUE(pair.a.send(pair.b));
	EXPECT_TRUE(pair.a.reaches(pair.b));
	EXPECT_EQ(soft_calls(device, SOFT_MODIFY_QP), before);
}

/* A QP that only sends shows its error only by the completions of its sends. */
void interface_recovers_a_send_only_qp_from_the_error_state(Test &test)
{
	if (!test.needs_another_cpu())
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	const auto state_of_sender = [&](u32 sender) {
		ib_qp_attr attr{};
		ib_qp_init_attr init;
		return ib_query_qp(pair.a.interface().qp(sender), &attr, IB_QP_STATE, &init)
			       ? IB_QPS_RESET
			       : attr.qp_state;
	};
	for (u32 sender = 1; pair.a.interface().qp(sender); sender++) {
		{
			/* Packets that the stack sends meanwhile do not cause recovery yet. */
			kern::RtnlGuard rtnl;
			ib_qp_attr attr{};
			attr.qp_state = IB_QPS_ERR;
			ASSERT_EQ(ib_modify_qp(pair.a.interface().qp(sender), &attr, IB_QP_STATE),
				  0);
			EXPECT_EQ(state_of_sender(sender), IB_QPS_ERR);
		}
		/* The stack chooses the transmit queue, among others by the protocol. */
		u16 protocol = 0x8800;
		EXPECT_TRUE(eventually([&] {
			(void)kern_kunit_netdev_send(pair.a.dev(), pair.b.address(), protocol++,
						     1000);
			kern::RtnlGuard rtnl;
			return state_of_sender(sender) == IB_QPS_RTS;
		}));
		EXPECT_TRUE(pair.a.runs());
		EXPECT_TRUE(pair.a.reaches(pair.b));
	}
}

/*
 * Asynchronous events of the QP and of a CQ are received (EVENT-02) and handled. A CQ in error is
 * replaced.
 */
void event_02_interface_recovers_after_a_qp_or_cq_error_event(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	for (const ib_event_type type :
	     {IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR, IB_EVENT_CQ_ERR}) {
		const soft_method method =
			type == IB_EVENT_CQ_ERR ? SOFT_CREATE_CQ : SOFT_MODIFY_QP;
		const unsigned long before = soft_calls(pair.b.device(), method);
		dispatch(type, pair.b.interface().qp());
		EXPECT_TRUE(
			eventually([&] { return soft_calls(pair.b.device(), method) > before; }));
		{
			kern::RtnlGuard rtnl;
		}
		EXPECT_TRUE(pair.b.runs());
		EXPECT_TRUE(pair.a.reaches(pair.b));
	}
}

struct Flood {
	const Host &from, &to;
	int run()
	{
		while (!kern::Thread::should_stop())
			(void)from.send(to, 300);
		return 0;
	}
};

/*
 * Checks the transmit queues when they are stopped, and delays polls until then.
 */
struct Watch {
	Watch(const Host &host) : device(host.device()), dev(host.dev())
	{
		soft_interpose(
			device, SOFT_MODIFY_QP,
			[](void *context) { static_cast<Watch *>(context)->on_modify(); }, this);
		soft_interpose(
			device, SOFT_POLL_CQ,
			[](void *context) { static_cast<Watch *>(context)->on_poll(); }, this);
	}
	~Watch()
	{
		soft_interpose(device, SOFT_MODIFY_QP, nullptr, nullptr);
		soft_interpose(device, SOFT_POLL_CQ, nullptr, nullptr);
	}
	void arm()
	{
		/* Each QP is moved to ERR and to RESET. */
		modifications.store_relaxed(2 * Interface::transmit_queues_wanted());
		holds.store_release(true);
	}
	unsigned stopped() const
	{
		unsigned count = 0;
		for (unsigned i = 0; i < Interface::transmit_queues_wanted(); i++)
			count += kern_txq_stopped(kern_netdev_tx_queue(dev, i));
		return count;
	}
	void on_modify()
	{
		holds.store_release(false);
		const unsigned left = modifications.load_relaxed();
		if (!left)
			return;
		modifications.store_relaxed(left - 1);
		if (stopped() != Interface::transmit_queues_wanted())
			open.fetch_add(1);
	}
	/*
	 * Its completions arrive while the queues are being stopped, if that begins before the send
	 * has ended.
	 */
	void on_poll()
	{
		const auto deadline = kern::Deadline::in_ms(20);
		while (holds.load_acquire() && stopped() != Interface::transmit_queues_wanted() &&
		       !deadline.passed())
			;
	}

	ib_device *const device;
	net_device *const dev;
	kern::Atomic<unsigned> modifications{}, open{};
	kern::Atomic<bool> holds{};
};

/*
 * While the queues are being stopped, no packet is passed to them. Completions that arrive
 * meanwhile do not restart them.
 */
void completions_during_interface_stop_do_not_restart_transmit_queues(Test &test)
{
	if (!test.needs_another_cpu())
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	Watch watch(pair.a);
	for (unsigned round = 0; round < 20; round++) {
		watch.arm();
		for (unsigned i = 0; i < 8; i++)
			(void)pair.a.send(pair.b, 300);
		pair.a.restart();
		EXPECT_TRUE(pair.a.runs());
	}
	EXPECT_EQ(watch.open.load_relaxed(), 0u);
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

/* After a restart that has failed at any command, the interface can be brought down and up. */
void interface_can_be_reopened_after_a_failed_restart(Test &test)
{
	if (!runs_on_these_devices(test))
		return;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	bool failed = true;
	unsigned nth = 0;
	while (failed && nth < 100) {
		{
			FailNth fault(pair.a.device(), SOFT_MODIFY_QP, ++nth);
			pair.a.restart();
			failed = fault.failed();
			pair.a.down();
		}
		ASSERT_EQ(pair.a.up(), 0);
		ASSERT_TRUE(pair.a.runs());
	}
	/* The transitions to ERR, RESET, INIT, RTR and RTS. */
	EXPECT_GE(nth, 5u);
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

} // namespace

SOFT_SUITES(ipoib_recovery, KUNIT_CASE(datagrams_of_all_sizes_arrive_without_errors),
	    KUNIT_CASE(queue_pairs_are_destroyed_before_netdev_unregistration_returns),
	    KUNIT_CASE(interface_counters_continue_after_ring_replacement),
	    KUNIT_CASE(mgmt_12_receive_buffers_are_posted_again_after_a_memory_shortage),
	    KUNIT_CASE(mgmt_09_interface_recovers_its_qp_from_the_error_state),
	    KUNIT_CASE(send_queue_in_the_sqe_state_is_restarted_with_one_modify_qp_call),
	    KUNIT_CASE(interface_recovers_a_send_only_qp_from_the_error_state),
	    KUNIT_CASE(event_02_interface_recovers_after_a_qp_or_cq_error_event),
	    KUNIT_CASE(completions_during_interface_stop_do_not_restart_transmit_queues),
	    KUNIT_CASE(failed_ring_allocation_does_not_change_the_ring_sizes),
	    KUNIT_CASE(interface_can_be_reopened_after_a_failed_restart));
