// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains test cases with one defect each, which core/kern/sim must report.
// tools/explore/tests/simulation_test.cpp lists the expected reports.
#include <kern/abi/explore.h>
#include <kern/completion.hpp>
#include <kern/dma.hpp>
#include <kern/irq_work.hpp>
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/rcu.hpp>
#include <kern/tasklet.hpp>
#include <kern/time.hpp>
#include <kern/timer.hpp>
#include <kern/work.hpp>
#include <kern/xarray.hpp>

using kern::kunit::ConcurrentThread;
using kern::kunit::Test;

namespace
{

void lock_order_cycle_is_reported(Test &)
{
	kern::SpinLock a(KERN_LOCK_CLASS("injected.a")), b(KERN_LOCK_CLASS("injected.b"));
	{
		kern::Guard first(a);
		kern::Guard second(b);
	}
	kern::Guard first(b);
	kern::Guard second(a);
}

void recursive_locking_is_reported(Test &)
{
	kern::SpinLock lock(KERN_LOCK_CLASS("injected.lock"));
	kern::Guard first(lock);
	kern::Guard second(lock);
}

void release_of_a_lock_that_is_not_held_is_reported(Test &)
{
	kern::Mutex lock(KERN_LOCK_CLASS("injected.lock"));
	lock.unlock();
}

void sleep_under_a_spinlock_is_reported(Test &)
{
	kern::SpinLock lock(KERN_LOCK_CLASS("injected.lock"));
	kern::Guard guard(lock);
	kern::sleep_ms(1);
}

void sleep_in_rcu_section_is_reported(Test &)
{
	kern::rcu::ReadGuard reading;
	kern::rcu::synchronize();
}

void sleeping_allocation_in_an_interrupt_is_reported(Test &)
{
	struct Handler {
		void run() { (void)kern::make<int>(kern::Gfp::kernel); }
		kern::IrqWork work{kern::method<&Handler::run>, this};
	} handler;
	handler.work.queue();
	handler.work.wait();
}

/* A lock that an interrupt handler takes as well is taken with interrupts enabled. */
void lock_taken_in_an_irq_and_with_irqs_enabled_is_reported(Test &)
{
	struct Handler {
		void run() { kern::Guard guard(lock); }
		kern::SpinLock lock{KERN_LOCK_CLASS("injected.lock")};
		kern::IrqWork work{kern::method<&Handler::run>, this};
	} handler;
	handler.work.queue();
	handler.work.wait();
	kern::Guard guard(handler.lock);
}

/* cancel() waits for a work item under a lock that the work item takes. */
void work_cancelled_under_a_lock_that_the_work_item_takes_is_reported(Test &)
{
	struct Port {
		void refresh() { kern::Guard guard(lock); }
		kern::Mutex lock{KERN_LOCK_CLASS("injected.port")};
		kern::Work work{kern::method<&Port::refresh>, this};
	} port;
	port.work.queue();
	port.work.flush();
	kern::Guard guard(port.lock);
	port.work.cancel();
}

void memory_leak_is_reported(Test &test)
{
	auto made = kern::make<u64>(kern::Gfp::kernel);
	ASSERT_OK(made);
	(void)made.take().release();
}

void memory_freed_by_the_wrong_function_is_reported(Test &)
{
	kern_free(kern_alloc_large(1, sizeof(u64), KERN_GFP_KERNEL));
}

void memory_freed_while_it_contains_a_held_lock_is_reported(Test &)
{
	struct Owner {
		kern::SpinLock lock{KERN_LOCK_CLASS("injected.owner")};
	};
	auto owner = kern::make<Owner>(kern::Gfp::kernel);
	owner.value()->lock.lock();
	kern_free(owner.take().release());
}

void task_exit_with_lock_held_is_reported(Test &)
{
	kern::SpinLock lock(KERN_LOCK_CLASS("injected.lock"));
	ConcurrentThread other([&] { lock.lock(); });
}

void task_exit_in_rcu_section_is_reported(Test &)
{
	ConcurrentThread other([] { kern_rcu_read_lock(); });
}

void memory_freed_while_it_contains_a_pending_timer_is_reported(Test &)
{
	struct Owner {
		void tick() {}
		kern::Timer timer{kern::method<&Owner::tick>, this};
	};
	auto owner = kern::make<Owner>(kern::Gfp::kernel);
	owner.value()->timer.start(10);
	/* Frees the memory without running the destructor, which would wait for the timer. */
	kern_free(owner.take().release());
}

/*
 * A pointer is used after the read-side section in which it was read. The defect is a race: it
 * shows only if the writer has freed the object by then.
 */
void use_of_an_rcu_object_after_its_read_section_is_reported(Test &test)
{
	struct Box {
		int value = 1;
	};
	kern::rcu::Pointer<Box> published(kern::make<Box>(kern::Gfp::kernel).take().release());
	kern::Atomic<int> sum{0};
	{
		ConcurrentThread reader([&] {
			Box *box;
			{
				kern::rcu::ReadGuard reading;
				box = published.load();
			}
			if (box)
				sum.store_relaxed(box->value);
		});
		Box *old = published.exchange(nullptr);
		kern::rcu::synchronize();
		kern::destroy(old);
	}
	EXPECT_LE(sum.load_relaxed(), 1);
}

/* Two tasks add to one number by a load and a store. */
void update_lost_between_an_atomic_load_and_store_is_reported(Test &test)
{
	kern::Atomic<int> number{0};
	const auto add = [&] { number.store_relaxed(number.load_relaxed() + 1); };
	{
		ConcurrentThread other(add);
		add();
	}
	EXPECT_EQ(number.load_relaxed(), 2);
}

/* A wakeup that is lost if it comes before the wait. */
void lost_wakeup_is_reported(Test &test)
{
	kern::Atomic<bool> waits{false};
	kern::Completion done;
	ConcurrentThread other([&] {
		if (waits.load_acquire())
			done.complete();
	});
	waits.store_release(true);
	done.wait();
	EXPECT_TRUE(waits.load_relaxed());
}

void livelock_is_reported(Test &)
{
	kern::Atomic<bool> never{false};
	while (!never.load_relaxed())
		;
}

void leaked_dma_mapping_is_reported(Test &)
{
	kern::kunit::FakeDevice device("injected");
	auto memory = kern::make<u64>(kern::Gfp::kernel);
	(void)kern::dma::map_single(device.native(), memory.value().get(), 8,
				    kern::dma::Direction::both);
}

/* The defect is undefined behaviour that accesses no invalid address. */
void shift_beyond_the_width_of_an_integer_is_reported(Test &test)
{
	kern::Atomic<int> by{64};
	EXPECT_NE(1 << by.load_relaxed(), 7);
}

/* The second of two allocations fails, and the first is leaked. */
void leak_of_the_first_allocation_after_the_second_failed_is_reported(Test &test)
{
	kern_explore_failures(KERN_EXPLORE_THIS_TASK);
	auto first = kern::make<u64>(kern::Gfp::kernel);
	auto second = kern::make<u64>(kern::Gfp::kernel);
	kern_explore_failures(KERN_EXPLORE_NONE);
	auto third = kern::make<u64>(kern::Gfp::kernel);
	EXPECT_TRUE(third.ok());
	if (first.ok() && !second.ok())
		(void)first.take().release();
}

/* A work item computes a wrong result if its allocation fails. */
void unhandled_allocation_failure_in_a_work_item_is_reported(Test &test)
{
	struct Port {
		void refresh()
		{
			auto made = kern::make<u64>(kern::Gfp::kernel);
			sum += made.ok() ? 1 : 2;
		}
		u64 sum = 0;
		kern::Work work{kern::method<&Port::refresh>, this};
	} port;
	kern_explore_failures(KERN_EXPLORE_EVERYBODY);
	port.work.queue();
	port.work.flush();
	kern_explore_failures(KERN_EXPLORE_NONE);
	EXPECT_EQ(port.sum, 1u);
}

/* A timer may fire before the loop that it limits has ended. */
void failure_caused_by_a_timer_that_fires_during_a_loop_is_reported(Test &test)
{
	struct Race {
		void tick() { late.store_relaxed(true); }
		kern::Atomic<bool> late{false};
		kern::Timer timer{kern::method<&Race::tick>, this};
	} race;
	race.timer.start(100);
	for (int i = 0; i < 50; i++)
		EXPECT_FALSE(race.late.load_relaxed());
	race.timer.cancel();
}

} // namespace

KUNIT_SUITE(simulation_defects, KUNIT_CASE(lock_order_cycle_is_reported),
	    KUNIT_CASE(recursive_locking_is_reported),
	    KUNIT_CASE(release_of_a_lock_that_is_not_held_is_reported),
	    KUNIT_CASE(sleep_under_a_spinlock_is_reported),
	    KUNIT_CASE(sleep_in_rcu_section_is_reported),
	    KUNIT_CASE(sleeping_allocation_in_an_interrupt_is_reported),
	    KUNIT_CASE(lock_taken_in_an_irq_and_with_irqs_enabled_is_reported),
	    KUNIT_CASE(work_cancelled_under_a_lock_that_the_work_item_takes_is_reported),
	    KUNIT_CASE(memory_leak_is_reported),
	    KUNIT_CASE(memory_freed_by_the_wrong_function_is_reported),
	    KUNIT_CASE(memory_freed_while_it_contains_a_held_lock_is_reported),
	    KUNIT_CASE(task_exit_with_lock_held_is_reported),
	    KUNIT_CASE(task_exit_in_rcu_section_is_reported),
	    KUNIT_CASE(memory_freed_while_it_contains_a_pending_timer_is_reported),
	    KUNIT_CASE(use_of_an_rcu_object_after_its_read_section_is_reported),
	    KUNIT_CASE(update_lost_between_an_atomic_load_and_store_is_reported),
	    KUNIT_CASE(lost_wakeup_is_reported), KUNIT_CASE(livelock_is_reported),
	    KUNIT_CASE(leaked_dma_mapping_is_reported),
	    KUNIT_CASE(shift_beyond_the_width_of_an_integer_is_reported),
	    KUNIT_CASE(failure_caused_by_a_timer_that_fires_during_a_loop_is_reported),
	    KUNIT_CASE(leak_of_the_first_allocation_after_the_second_failed_is_reported),
	    KUNIT_CASE(unhandled_allocation_failure_in_a_work_item_is_reported));
