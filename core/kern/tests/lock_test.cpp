// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each type of lock excludes all contexts that it must exclude.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/lock.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace
{

constexpr int threads = 4;
constexpr int rounds = 3000;

/* A read-modify-write that loses updates if two are in it at once. */
template<class Lock>
struct Contended {
	explicit Contended(kern::LockClass &lock_class) : lock(lock_class) {}
	int run()
	{
		for (int i = 0; i < rounds; i++) {
			kern::Guard guard(lock);
			const int seen = kern::read_once(count);
			if (i % 16 == 0)
				kern::cpu_relax();
			kern::write_once(count, seen + 1);
		}
		if (finished.fetch_add(1) + 1 == threads)
			done.complete();
		return 0;
	}
	Lock lock;
	int count = 0;
	kern::Atomic<int> finished;
	kern::Completion done;
};

template<class Lock>
void excludes(kern::kunit::Test &test, kern::LockClass &lock_class)
{
	Contended<Lock> contended(lock_class);
	kern::Thread running[threads];
	for (auto &thread : running) {
		auto created = kern::Thread::create(
			"kern-lock", kern::method<&Contended<Lock>::run>, &contended);
		ASSERT_OK(created);
		thread = created.take();
	}
	EXPECT_TRUE(contended.done.wait_for(60000));
	for (auto &thread : running)
		(void)thread.stop();
	EXPECT_EQ(contended.count, threads * rounds);
}

/* Only one task at a time holds a lock, whatever its kind. */
void spin_lock_is_exclusive(kern::kunit::Test &test)
{
	excludes<kern::SpinLock>(test, KERN_LOCK_CLASS("test.spin"));
}
void bh_lock_is_exclusive(kern::kunit::Test &test)
{
	excludes<kern::BhSpinLock>(test, KERN_LOCK_CLASS("test.bh"));
}
void irq_lock_is_exclusive(kern::kunit::Test &test)
{
	excludes<kern::IrqSpinLock>(test, KERN_LOCK_CLASS("test.irq"));
}
void mutex_is_exclusive(kern::kunit::Test &test)
{
	excludes<kern::Mutex>(test, KERN_LOCK_CLASS("test.mutex"));
}
void rw_lock_has_one_writer_at_a_time(kern::kunit::Test &test)
{
	excludes<kern::RwLock>(test, KERN_LOCK_CLASS("test.rw"));
}

/* The guard of an IrqSpinLock disables interrupts and restores the previous state. */
void irq_guard_restores_the_interrupt_state(kern::kunit::Test &test)
{
	kern::IrqSpinLock outer(KERN_LOCK_CLASS("test.outer")),
		inner(KERN_LOCK_CLASS("test.inner"));
	bool in_outer, in_inner, after_inner;

	EXPECT_FALSE(kern_irqs_disabled());
	{
		kern::Guard outer_guard(outer);
		in_outer = kern_irqs_disabled();
		{
			kern::Guard inner_guard(inner);
			in_inner = kern_irqs_disabled();
		}
		after_inner = kern_irqs_disabled();
	}
	EXPECT_TRUE(in_outer);
	EXPECT_TRUE(in_inner);
	EXPECT_TRUE(after_inner);
	EXPECT_FALSE(kern_irqs_disabled());
}

/* The data of a Locked are accessed under the lock, and with() returns the result of its body. */
void function_that_accesses_locked_data_runs_under_the_lock(kern::kunit::Test &test)
{
	kern::Locked<int, kern::IrqSpinLock> number(KERN_LOCK_CLASS("test.locked"), 5);
	bool off = false;
	const int doubled = number.with([&](int &value) {
		off = kern_irqs_disabled();
		value *= 2;
		return value;
	});
	EXPECT_TRUE(off);
	EXPECT_EQ(doubled, 10);
	EXPECT_FALSE(kern_irqs_disabled());
}

/* Two readers hold a lock at the same time, and try_lock() of a held mutex fails. */
void readers_share_a_lock_and_trylock_of_a_held_mutex_fails(kern::kunit::Test &test)
{
	kern::RwLock lock(KERN_LOCK_CLASS("test.shared"));
	kern::Mutex mutex(KERN_LOCK_CLASS("test.try"));
	struct Reader {
		int run()
		{
			kern::SharedGuard guard(*lock);
			inside.complete();
			return 0;
		}
		kern::RwLock *lock;
		kern::Completion inside;
	} reader{&lock, {}};
	struct Tryer {
		int run()
		{
			const bool got = mutex->try_lock();
			if (got)
				mutex->unlock();
			result = got;
			done.complete();
			return 0;
		}
		kern::Mutex *mutex;
		bool result = true;
		kern::Completion done;
	} tryer{&mutex, true, {}};
	{
		kern::SharedGuard guard(lock);
		auto thread =
			kern::Thread::create("kern-reader", kern::method<&Reader::run>, &reader);
		ASSERT_OK(thread);
		EXPECT_TRUE(reader.inside.wait_for(10000));
	}
	{
		kern::Guard guard(mutex);
		mutex.assert_held();
		auto thread = kern::Thread::create("kern-tryer", kern::method<&Tryer::run>, &tryer);
		ASSERT_OK(thread);
		EXPECT_TRUE(tryer.done.wait_for(10000));
		EXPECT_FALSE(tryer.result);
	}
}

/* A task that holds a NoIoMutex allocates without I/O, as work items do. */
void lock_13_allocations_under_a_noio_mutex_do_no_io(kern::kunit::Test &test)
{
	kern::NoIoMutex outer{KERN_LOCK_CLASS("kern_test.noio_outer")};
	kern::NoIoMutex inner{KERN_LOCK_CLASS("kern_test.noio_inner")};
	EXPECT_FALSE(kern_noio());
	{
		kern::Guard guard(outer);
		EXPECT_TRUE(kern_noio());
		{
			kern::Guard second(inner);
			EXPECT_TRUE(kern_noio());
		}
		EXPECT_TRUE(kern_noio());
	}
	EXPECT_FALSE(kern_noio());
}

} // namespace

KUNIT_SUITE(kern_lock, KUNIT_CASE(lock_13_allocations_under_a_noio_mutex_do_no_io),
	    KUNIT_CASE(spin_lock_is_exclusive), KUNIT_CASE(bh_lock_is_exclusive),
	    KUNIT_CASE(irq_lock_is_exclusive), KUNIT_CASE(mutex_is_exclusive),
	    KUNIT_CASE(rw_lock_has_one_writer_at_a_time),
	    KUNIT_CASE(irq_guard_restores_the_interrupt_state),
	    KUNIT_CASE(function_that_accesses_locked_data_runs_under_the_lock),
	    KUNIT_CASE(readers_share_a_lock_and_trylock_of_a_held_mutex_fails));
