// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that asynchronous events reach their handlers in order, and that no handler is called after
// its unregistration.
#include <span>
#include <kern/completion.hpp>
#include <kern/irq_work.hpp>
#include <kern/kunit.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>
#include <kern/timer.hpp>
#include <rdma/ib_cache.h>
#include "../../verbs/tests/observer.hpp"
#include "fake_device.hpp"

namespace
{

/* A handler that counts and records its events. */
struct Listener {
	Listener() = default;
	explicit Listener(std::span<ib_event> storage) : events(storage) {}
	void listen(ib_device *device)
	{
		INIT_IB_EVENT_HANDLER(&handler, device, received);
		ib_register_event_handler(&handler);
	}
	static void received(ib_event_handler *handler, ib_event *event)
	{
		auto *self = reinterpret_cast<Listener *>(handler);
		const unsigned int at = self->count.fetch_add(1);
		if (at < self->events.size())
			self->events[at] = *event;
		if (self->inside.fetch_add(1) != 0)
			self->overlapped = true;
		if (at == 0)
			self->entered.complete();
		if (at == 0 && self->slow)
			kern::delay_us(2000);
		ib_port_state state;
		if (event->element.port_num &&
		    !ib_get_cached_port_state(event->device, event->element.port_num, &state))
			self->seen_state = state;
		self->inside.fetch_sub(1);
		self->recorded.fetch_add(1);
		self->one_more.complete();
	}
	/* Waits until @number events have been received and recorded. */
	bool wait_for(unsigned int number)
	{
		while (recorded.load_acquire() < number)
			if (!one_more.wait_for(30000))
				return false;
		return true;
	}

	ib_event_handler handler{};
	kern::Atomic<unsigned int> count;
	kern::Atomic<int> inside;
	bool overlapped = false;
	bool slow = false;
	int seen_state = -1;
	kern::Atomic<unsigned int> recorded;
	kern::Completion entered;
	kern::Completion one_more;
	ib_event few[8]{};
	std::span<ib_event> events{few};
};
static_assert(__builtin_offsetof(Listener, handler) == 0);

constexpr ib_event_type unaffiliated[] = {
	IB_EVENT_DEVICE_FATAL,      IB_EVENT_PORT_ACTIVE, IB_EVENT_PORT_ERR,
	IB_EVENT_LID_CHANGE,        IB_EVENT_PKEY_CHANGE, IB_EVENT_SM_CHANGE,
	IB_EVENT_CLIENT_REREGISTER, IB_EVENT_GID_CHANGE,
};

/* Every kind of event has a distinct name. */
void event_01_every_event_has_a_distinct_name(kern::kunit::Test &test)
{
	for (int event = IB_EVENT_CQ_ERR; event < IB_EVENT_WQ_FATAL; event++)
		for (int other = IB_EVENT_CQ_ERR; other < event; other++)
			EXPECT_NE(__builtin_strcmp(ib_event_msg(static_cast<ib_event_type>(event)),
						   ib_event_msg(static_cast<ib_event_type>(other))),
				  0);
	EXPECT_TRUE(ib_event_msg(static_cast<ib_event_type>(1000)) != nullptr);
}

/* Events of a CQ, a QP or an SRQ reach its own handler, before dispatch returns, and no other. */
void event_02_affiliated_event_reaches_only_the_handler_of_its_cq_qp_or_srq(kern::kunit::Test &test)
{
	struct Recorder {
		static void event(ib_event *event, void *context)
		{
			auto *self = static_cast<Recorder *>(context);
			self->count++;
			self->last = event->event;
		}
		int count = 0;
		ib_event_type last{};
	} by_cq, by_qp, by_srq;
	FakeDeviceOwner device;
	ASSERT_EQ(device.add(), 0);
	Listener listener;
	listener.listen(device.ib());

	ib_cq cq{};
	cq.device = device.ib();
	cq.event_handler = Recorder::event;
	cq.cq_context = &by_cq;
	ib_qp qp{};
	qp.device = device.ib();
	qp.qp_type = IB_QPT_RC;
	qp.event_handler = Recorder::event;
	qp.qp_context = &by_qp;
	ib_srq srq{};
	srq.device = device.ib();
	srq.event_handler = Recorder::event;
	srq.srq_context = &by_srq;

	int expected = 0;
	for (ib_event_type type : {IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
				   IB_EVENT_COMM_EST, IB_EVENT_SQ_DRAINED, IB_EVENT_PATH_MIG,
				   IB_EVENT_PATH_MIG_ERR, IB_EVENT_QP_LAST_WQE_REACHED}) {
		rdma::dispatch(type, &qp);
		EXPECT_EQ(by_qp.count, ++expected);
		EXPECT_EQ(by_qp.last, type);
	}
	rdma::dispatch(IB_EVENT_CQ_ERR, &cq);
	EXPECT_EQ(by_cq.count, 1);
	rdma::dispatch(IB_EVENT_SRQ_ERR, &srq);
	rdma::dispatch(IB_EVENT_SRQ_LIMIT_REACHED, &srq);
	EXPECT_EQ(by_srq.count, 2);
	EXPECT_EQ(by_srq.last, IB_EVENT_SRQ_LIMIT_REACHED);

	// An event for all listeners follows those, and must be the only one that arrives.
	rdma::dispatch(IB_EVENT_PORT_ERR, device.ib(), 1);
	EXPECT_TRUE(listener.wait_for(1));
	EXPECT_EQ(listener.events[0].event, IB_EVENT_PORT_ERR);
	ib_unregister_event_handler(&listener.handler);
}

/*
 * Every registered handler of the device gets every unaffiliated event, and handlers of other
 * devices do not.
 */
void event_02_unaffiliated_event_reaches_all_handlers_registered_for_its_device(
	kern::kunit::Test &test)
{
	FakeDeviceOwner device, other;
	auto made = kern::make_array<Listener>(kern::Gfp::kernel, 3);
	ASSERT_OK(made);
	Listener &first = made.value()[0], &second = made.value()[1], &elsewhere = made.value()[2];
	ASSERT_EQ(device.add(), 0);
	ASSERT_EQ(other.add(), 0);
	first.listen(device.ib());
	second.listen(device.ib());
	elsewhere.listen(other.ib());
	for (ib_event_type type : unaffiliated)
		rdma::dispatch(type, device.ib(), type == IB_EVENT_DEVICE_FATAL ? 0 : 2);
	constexpr unsigned int count = sizeof(unaffiliated) / sizeof(unaffiliated[0]);
	EXPECT_TRUE(first.wait_for(count));
	EXPECT_TRUE(second.wait_for(count));
	for (unsigned int i = 0; i < count; i++) {
		EXPECT_EQ(second.events[i].event, unaffiliated[i]);
		EXPECT_EQ(second.events[i].device, device.ib());
	}
	ib_unregister_event_handler(&first.handler);
	ib_unregister_event_handler(&second.handler);
	ib_unregister_event_handler(&elsewhere.handler);
	EXPECT_EQ(elsewhere.count.load_relaxed(), 0u);
}

/* A handler that reads the cache sees the values after the event. */
void event_02_port_cache_is_refreshed_before_event_handlers_run(kern::kunit::Test &test)
{
	FakeDeviceOwner device;
	Listener listener;
	ASSERT_EQ(device.add(), 0);
	listener.listen(device.ib());
	device->port_state.store_release(IB_PORT_ACTIVE);
	device->lid.store_release(77);
	rdma::dispatch(IB_EVENT_PORT_ACTIVE, device.ib(), 1);
	EXPECT_TRUE(listener.wait_for(1));
	ib_unregister_event_handler(&listener.handler);
	EXPECT_EQ(listener.seen_state, static_cast<int>(IB_PORT_ACTIVE));
	u16 lid = 0;
	EXPECT_EQ(ib_get_cached_lid(device.ib(), 1, &lid), 0);
	EXPECT_EQ(lid, 77);
}

/*
 * Handlers receive events in the order of dispatch, one at a time, though they come from several
 * contexts.
 */
void event_03_handlers_get_events_in_dispatch_order(kern::kunit::Test &test)
{
	constexpr unsigned int count = 200;
	FakeDeviceOwner device;
	auto storage = kern::make_array<ib_event>(kern::Gfp::kernel, count);
	ASSERT_OK(storage);
	Listener listener(storage.value().span());
	ASSERT_EQ(device.add(), 0);
	listener.slow = true;
	listener.listen(device.ib());
	for (unsigned int i = 0; i < count; i++)
		rdma::dispatch(unaffiliated[1 + i % 7], device.ib(), 1 + i % 2);
	EXPECT_TRUE(listener.wait_for(count));
	for (unsigned int i = 0; i < count; i++) {
		EXPECT_EQ(listener.events[i].event, unaffiliated[1 + i % 7]);
		EXPECT_EQ(listener.events[i].element.port_num, 1 + i % 2);
	}
	EXPECT_FALSE(listener.overlapped);
	ib_unregister_event_handler(&listener.handler);
}

/*
 * After its unregistration has returned, a handler does not run and is not called, although events
 * continue to arrive.
 */
void event_03_lock_12_event_handler_does_not_run_after_its_unregistration(kern::kunit::Test &test)
{
	struct Source {
		int run()
		{
			unsigned int i = 0;
			while (!kern::Thread::should_stop()) {
				rdma::dispatch(unaffiliated[1 + i % 7], device, 1);
				if (++i % 8 == 0)
					kern::sleep_us(50, 100);
			}
			return 0;
		}
		ib_device *device;
	};
	FakeDeviceOwner device;
	ASSERT_EQ(device.add(), 0);
	Source source{device.ib()};
	auto thread = kern::Thread::create("events", kern::method<&Source::run>, &source);
	ASSERT_OK(thread);
	unsigned int handled = 0;
	for (int round = 0; round < 50; round++) {
		Listener listener;
		listener.slow = true;
		listener.listen(device.ib());
		// In most rounds the handler is still running when it is unregistered.
		EXPECT_TRUE(listener.entered.wait_for(30000));
		ib_unregister_event_handler(&listener.handler);
		EXPECT_EQ(listener.inside.load_acquire(), 0);
		const unsigned int after = listener.count.load_acquire();
		kern::sleep_us(100, 200);
		EXPECT_EQ(listener.count.load_acquire(), after);
		handled += after;
	}
	EXPECT_EQ(thread.value().stop(), 0);
	EXPECT_GE(handled, 50u);
}

/*
 * Events can be reported with interrupts disabled and from soft interrupts. An invalid port is
 * refused there, too.
 */
void lock_03_events_can_be_dispatched_from_any_context(kern::kunit::Test &test)
{
	struct FromTimer {
		void fire()
		{
			rdma::dispatch(IB_EVENT_LID_CHANGE, device, 2);
			rdma::dispatch(IB_EVENT_LID_CHANGE, device, 3);
			fired.complete();
		}
		ib_device *device;
		kern::Completion fired;
		kern::Timer timer{kern::method<&FromTimer::fire>, this};
	};
	struct FromInterrupt {
		explicit FromInterrupt(ib_device *of) : device(of) {}
		void run()
		{
			hard = kern_in_hard_irq();
			rdma::dispatch(IB_EVENT_SM_CHANGE, device, 1);
		}
		ib_device *device;
		bool hard = false;
		kern::IrqWork work{kern::method<&FromInterrupt::run>, this};
	};
	FakeDeviceOwner device;
	Listener listener;
	fixture::Observer observer;
	ASSERT_EQ(device.add(), 0);
	listener.listen(device.ib());
	kern::IrqSpinLock lock(KERN_LOCK_CLASS("test.dispatch"));
	{
		kern::Guard guard(lock);
		rdma::dispatch(IB_EVENT_PORT_ERR, device.ib(), 1);
	}
	EXPECT_TRUE(listener.wait_for(1));
	FromTimer timer{device.ib(), {}};
	timer.timer.start(1);
	EXPECT_TRUE(timer.fired.wait_for(10000));
	EXPECT_TRUE(listener.wait_for(2));
	EXPECT_EQ(listener.events[1].event, IB_EVENT_LID_CHANGE);
	EXPECT_EQ(observer.count(verbs::Rule::mandatory_attribute), 1u);
	{
		FromInterrupt interrupt{device.ib()};
		interrupt.work.queue();
		interrupt.work.wait();
		EXPECT_TRUE(interrupt.hard);
	}
	EXPECT_TRUE(listener.wait_for(3));
	EXPECT_EQ(listener.events[2].event, IB_EVENT_SM_CHANGE);
	ib_unregister_event_handler(&listener.handler);
	EXPECT_EQ(listener.count.load_relaxed(), 3u);
}

/*
 * A driver may report events before registration and after unregistration: they are dropped safely.
 */
void events_of_unregistered_devices_are_dropped(kern::kunit::Test &test)
{
	FakeDeviceOwner device;
	Listener listener;
	rdma::dispatch(IB_EVENT_PORT_ACTIVE, device.ib(), 1);
	ASSERT_EQ(device.add(), 0);
	listener.listen(device.ib());
	ib_unregister_event_handler(&listener.handler);
	device.remove();
	rdma::dispatch(IB_EVENT_DEVICE_FATAL, device.ib(), 0);
	EXPECT_EQ(listener.count.load_relaxed(), 0u);
}

} // namespace

KUNIT_SUITE(core_events, KUNIT_CASE(event_01_every_event_has_a_distinct_name),
	    KUNIT_CASE(event_02_affiliated_event_reaches_only_the_handler_of_its_cq_qp_or_srq),
	    KUNIT_CASE(event_02_unaffiliated_event_reaches_all_handlers_registered_for_its_device),
	    KUNIT_CASE(event_02_port_cache_is_refreshed_before_event_handlers_run),
	    KUNIT_CASE(event_03_handlers_get_events_in_dispatch_order),
	    KUNIT_CASE(event_03_lock_12_event_handler_does_not_run_after_its_unregistration),
	    KUNIT_CASE(lock_03_events_can_be_dispatched_from_any_context),
	    KUNIT_CASE(events_of_unregistered_devices_are_dropped));
