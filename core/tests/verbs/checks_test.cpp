// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The rules that debug builds watch, each broken once.
#include <kern/irq_work.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "../../verbs/checks.hpp"
#include "fixture.hpp"

using namespace fixture;
using verbs::Rule;

namespace
{

constexpr soft_options plain = {.lid = 1};

/* Takes the place of the log while it lives. One at a time. */
class Observer {
public:
	Observer()
	{
		for (auto &count : counts_)
			count.store_relaxed(0);
		ib_set_misuse_observer(observe);
	}
	~Observer() { ib_set_misuse_observer(nullptr); }
	Observer(const Observer &) = delete;
	Observer &operator=(const Observer &) = delete;

	unsigned int count(Rule rule) const { return counts_[static_cast<int>(rule)].load_relaxed(); }
	unsigned int total() const
	{
		unsigned int sum = 0;
		for (auto &count : counts_)
			sum += count.load_relaxed();
		return sum;
	}

private:
	static void observe(int rule, const char *, const char *) { counts_[rule].add_relaxed(1); }
	static inline constinit kern::Atomic<unsigned int> counts_[8] = {};
};

/* Does this kernel look for those who sleep where they must not? */
bool sleeping_is_watched()
{
	kern::NoSleepSection section;
	return !kern_may_sleep();
}

/* A function that may sleep, called from within a method that must not: the driver's handler runs inside req_notify_cq. */
void lock_01_method_sleeps(Test &test)
{
	Device device({.context = SOFT_INLINE, .lid = 1});
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(
		device,
		[](ib_cq *cq, void *) {
			ib_port_attr attr;
			ib_query_port(cq->device, 1, &attr);
		},
		nullptr, 8);
	ASSERT_OK(cq);
	ib_wc wc = {};
	ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
	Observer observer;
	EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(observer.count(Rule::lock_05), 1u);
	/* Where the kernel looks for sleepers too, it is as well a call where nothing may sleep. */
	EXPECT_EQ(observer.count(sleeping_is_watched() ? Rule::lock_02 : Rule::lock_01), 1u);
	EXPECT_EQ(observer.total(), 2u);
}

/* The any-context functions do their work in any context. */
void lock_01_any_context(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	struct InInterrupt {
		explicit InInterrupt(PdRef &the_pd) : pd(the_pd) { work.queue(); }
		void run()
		{
			rdma_ah_attr attr = {.port_num = 1};
			rdma_ah_set_dlid(&attr, 5);
			ib_ah *ah = rdma_create_ah(pd->get(), &attr, 0);
			if (rdma::is_err(ah))
				return;
			rdma_ah_attr back = {};
			rdma_ah_set_dlid(&attr, 6);
			if (rdma_modify_ah(ah, &attr) == 0 && rdma_query_ah(ah, &back) == 0)
				lid = rdma_ah_get_dlid(&back);
			rdma_destroy_ah(ah, 0);
		}
		PdRef &pd;
		u32 lid = 0;
		kern::IrqWork work{kern::method<&InInterrupt::run>, this};
	};
	Observer observer;
	InInterrupt interrupt(pd.value());
	interrupt.work.wait();
	EXPECT_EQ(interrupt.lid, 6u);
	EXPECT_EQ(observer.total(), 0u);
}

/* A function that may sleep, called where nothing may. */
void lock_02_called_in_atomic(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	kern::IrqSpinLock lock(KERN_LOCK_CLASS("test.lock_02"));
	Observer observer;
	{
		kern::Guard guard(lock);
		EXPECT_EQ(rdma::ptr_err(ib_alloc_pd(device, ~0u)), -EINVAL);
	}
	EXPECT_EQ(observer.count(Rule::lock_02), 1u);
	EXPECT_EQ(rdma::ptr_err(ib_alloc_pd(device, ~0u)), -EINVAL);
	EXPECT_EQ(observer.total(), 1u);
}

/* A driver that runs the completion handler from within req_notify_cq. */
void lock_05_handler_inside_method(Test &test)
{
	for (soft_context context : {SOFT_INLINE, SOFT_HARD_INTERRUPT, SOFT_SOFT_INTERRUPT, SOFT_TASK}) {
		Device device({.context = context, .lid = 1});
		ASSERT_TRUE(device.ok());
		kern::Completion handled;
		auto cq = rdma::CompletionQueue::create(
			device, [](ib_cq *, void *done) { static_cast<kern::Completion *>(done)->complete(); }, &handled,
			8);
		ASSERT_OK(cq);
		ib_wc wc = {};
		ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
		Observer observer;
		EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 0);
		EXPECT_TRUE(handled.wait_for(5000));
		EXPECT_EQ(observer.count(Rule::lock_05), context == SOFT_INLINE ? 1u : 0u);
		EXPECT_EQ(observer.count(Rule::lock_06), 0u);
	}
}

/* A handler that is run while it runs. */
void lock_06_handler_twice_at_once(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<unsigned int> runs{0};
	runs.store_relaxed(0);
	auto cq = rdma::CompletionQueue::create(
		device,
		[](ib_cq *cq, void *) {
			if (runs.fetch_add(1) == 0)
				rdma::complete(cq);
		},
		nullptr, 8);
	ASSERT_OK(cq);
	Observer observer;
	rdma::complete(cq.value()->get());
	EXPECT_EQ(runs.load_relaxed(), 2u);
	EXPECT_EQ(observer.count(Rule::lock_06), 1u);
	rdma::complete(cq.value()->get());
	EXPECT_EQ(observer.count(Rule::lock_06), 1u);
}

/* Inside a completion handler nothing may sleep, whatever context the driver calls it in. */
void lock_07_handler_sleeps(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<int> may_sleep{-1};
	auto cq = rdma::CompletionQueue::create(
		device, [](ib_cq *, void *) { may_sleep.store_relaxed(kern_may_sleep()); }, nullptr, 8);
	ASSERT_OK(cq);
	if (!sleeping_is_watched()) {
		test.skip("the kernel does not look for sleepers");
		return;
	}
	rdma::complete(cq.value()->get());
	EXPECT_EQ(may_sleep.load_relaxed(), 0);
	EXPECT_TRUE(kern_may_sleep());
}

/* A driver that arms for flags that fit nothing, or says unasked that something was missed, is found out. */
void notify_04_driver_answers_unasked(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_OK(cq);
	Observer observer;
	soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, 1);
	EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 1);
	EXPECT_EQ(observer.count(Rule::notify_04), 1u);
	soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, 2);
	EXPECT_EQ(cq.value()->request_notification(static_cast<ib_cq_notify_flags>(0)), 2);
	EXPECT_EQ(observer.count(Rule::notify_01), 1u);
}

/* What is left behind is reported once for each kind and owner, and the device goes all the same. */
void lock_10_leaked_objects_are_named(Test &test)
{
	const soft_options options = plain;
	ib_device *device = soft_create(&options);
	ASSERT_FALSE(rdma::is_err(device));
	const ib_cq_init_attr attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
	ib_pd *pd = ib_alloc_pd(device, 0);
	ib_xrcd *xrcd = __ib_alloc_xrcd(device, "another");
	ib_xrcd *same = __ib_alloc_xrcd(device, "another");
	ib_cq *cq = ib_create_cq(device, nullptr, nullptr, nullptr, &attr);
	ASSERT_FALSE(rdma::is_err(pd) || rdma::is_err(xrcd) || rdma::is_err(same) || rdma::is_err(cq));
	ib_destroy_cq(cq);
	Observer observer;
	soft_destroy(device);
	EXPECT_EQ(observer.count(Rule::lock_10), 2u);
	EXPECT_EQ(observer.total(), 2u);
	/* The memory is still theirs. */
	kern_free(pd);
	kern_free(xrcd);
	kern_free(same);
}

} // namespace

KUNIT_SUITE(verbs_checks, KUNIT_CASE(lock_01_method_sleeps), KUNIT_CASE(lock_01_any_context),
	    KUNIT_CASE(lock_02_called_in_atomic), KUNIT_CASE(lock_05_handler_inside_method),
	    KUNIT_CASE(lock_06_handler_twice_at_once), KUNIT_CASE(lock_07_handler_sleeps),
	    KUNIT_CASE(notify_04_driver_answers_unasked),
	    KUNIT_CASE(lock_10_leaked_objects_are_named));
