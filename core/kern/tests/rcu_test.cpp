// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that RCU readers see the old or the new object, and that callbacks run after existing
// readers.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/rcu.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace
{

struct Table {
	u64 a = 1, b = 1;
	~Table() { a = b = 0; }
};

struct Reader {
	int run()
	{
		while (!kern::Thread::should_stop()) {
			{
				kern::rcu::ReadGuard reading;
				const Table *seen = table->load();
				const u64 a = kern::read_once(seen->a);
				kern::cpu_relax();
				if (a == 0 || a != kern::read_once(seen->b))
					torn.fetch_add(1);
			}
			// Without preemption the writer would not run otherwise.
			if (reads.fetch_add(1) % 64 == 63)
				kern::sleep_us(10, 20);
		}
		return 0;
	}
	kern::rcu::Pointer<Table> *table;
	kern::Atomic<int> torn;
	kern::Atomic<int> reads;
};

/*
 * A reader sees either the old table or the new one, never a mixture. The old one exists until its
 * readers have finished.
 */
void rcu_reader_sees_the_old_or_the_new_table(kern::kunit::Test &test)
{
	auto first = kern::make<Table>(kern::Gfp::kernel);
	ASSERT_OK(first);
	kern::rcu::Pointer<Table> table(first.take().release());
	Reader reader{&table, {}, {}};
	auto thread = kern::Thread::create("kern-rcu", kern::method<&Reader::run>, &reader);
	if (EXPECT_OK(thread)) {
		for (u64 generation = 2; generation < 12; generation++) {
			auto fresh = kern::make<Table>(kern::Gfp::kernel);
			if (!EXPECT_OK(fresh))
				break;
			fresh.value()->a = fresh.value()->b = generation;
			Table *old = table.exchange(fresh.take().release());
			kern::rcu::synchronize();
			kern::destroy(old);
		}
		const auto deadline = kern::Deadline::in_ms(10000);
		while (reader.reads.load_relaxed() < 10 && !deadline.passed())
			kern::sleep_ms(1);
		(void)thread.value().stop();
	}
	EXPECT_EQ(reader.torn.load_relaxed(), 0);
	EXPECT_GT(reader.reads.load_relaxed(), 0);
	kern::destroy(table.load_exclusive());
}

/* A deferred callback runs after the existing readers have finished, and barrier() waits for it. */
void rcu_callback_runs_after_existing_readers(kern::kunit::Test &test)
{
	struct Object {
		void gone() { called.store_release(true); }
		kern::Atomic<bool> called;
		kern::rcu::Deferred deferred;
	} object;
	{
		kern::rcu::ReadGuard reading;
		object.deferred.call(kern::method<&Object::gone>, &object);
		EXPECT_FALSE(object.called.load_acquire());
	}
	kern::rcu::barrier();
	EXPECT_TRUE(object.called.load_acquire());
}

} // namespace

KUNIT_SUITE(kern_rcu, KUNIT_CASE(rcu_reader_sees_the_old_or_the_new_table),
	    KUNIT_CASE(rcu_callback_runs_after_existing_readers));
