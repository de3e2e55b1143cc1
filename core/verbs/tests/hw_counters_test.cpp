// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that all readers of hardware counters share one query, whose result is cached for the
// counters' lifespan.
#include <kern/thread.hpp>
#include <rdma/ib_hw_counters.h>
#include "fixture.hpp"

using namespace fixture;

namespace
{

/* Long compared with the time that any of these tests takes. */
constexpr u32 long_ms = 10'000;

unsigned long questions(ib_device *device)
{
	return soft_calls(device, SOFT_GET_HW_STATS);
}

void hw_counters_are_read_by_port_and_index(Test &test)
{
	Device device({.ports = 2});
	ASSERT_TRUE(device.ok());
	for (u32 port = 0; port <= 2; port++) {
		const rdma_hw_counters *counters = ib_hw_counters(device, port);
		ASSERT_TRUE(counters && counters->count == 2);
		u64 values[2] = {};
		EXPECT_EQ(ib_get_hw_stats(device, port, 0, 2, values), 0);
		EXPECT_EQ(values[1], u64{port});
		u64 last = 0;
		EXPECT_EQ(ib_get_hw_stats(device, port, 1, 1, &last), 0);
		EXPECT_EQ(last, u64{port});
		/* Ports and counters that do not exist. */
		EXPECT_EQ(ib_get_hw_stats(device, port, 0, 3, values), -EINVAL);
		EXPECT_EQ(ib_get_hw_stats(device, port, 3, 0, values), -EINVAL);
		EXPECT_EQ(ib_get_hw_stats(device, port, 1, ~u32{0}, values), -EINVAL);
	}
	u64 value;
	EXPECT_TRUE(ib_hw_counters(device, 3) == nullptr);
	EXPECT_EQ(ib_get_hw_stats(device, 3, 0, 1, &value), -EOPNOTSUPP);
	EXPECT_EQ(ib_get_hw_stats_lifespan(device, 3), -EOPNOTSUPP);
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 3, 1), -EOPNOTSUPP);
}

/* The device is queried again only when the sample is too old. Each port has its own sample. */
void hw_counters_are_read_once_per_lifespan(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	u64 value = 0;
	EXPECT_EQ(ib_get_hw_stats_lifespan(device, 1), 10);
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, long_ms), 0);
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, long_ms + 1), -EINVAL);
	EXPECT_EQ(ib_get_hw_stats_lifespan(device, 1), static_cast<int>(long_ms));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), 0);
	EXPECT_TRUE(value == 1 && questions(device) == 1);

	EXPECT_EQ(ib_get_hw_stats(device, 0, 0, 1, &value), 0);
	EXPECT_EQ(value, 2ul);

	/* The new lifespan applies to the age of the existing sample. */
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, 1), 0);
	kern::sleep_ms(2);
	EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), 0);
	EXPECT_EQ(value, 3ul);
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, 0), 0);
	for (u64 asked = 4; asked < 7; asked++) {
		EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), 0);
		EXPECT_EQ(value, asked);
	}
}

/* A device that does not respond is not queried again by each waiting reader. */
void hw_counter_errors_are_cached_for_the_lifespan(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	u64 value = 0;
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, long_ms), 0);
	soft_fail(device, SOFT_GET_HW_STATS, 1, -ETIMEDOUT);
	EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), -ETIMEDOUT);
	EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), -ETIMEDOUT);
	EXPECT_EQ(questions(device), 1ul);
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, 0), 0);
	EXPECT_EQ(ib_get_hw_stats(device, 1, 0, 1, &value), 0);
	EXPECT_EQ(value, 2ul);
}

struct Reader {
	int read()
	{
		begun.complete();
		return ib_get_hw_stats(device, 1, 0, 1, &value);
	}

	ib_device *device;
	kern::Completion begun{};
	u64 value = 0;
};

/* A query of the device, which blocks until the test lets it end. */
struct Question {
	static void wait(void *context)
	{
		auto &question = *static_cast<Question *>(context);
		question.begun.complete();
		question.may_end.wait();
	}
	kern::Completion begun, may_end;
};

/* A reader that arrives during a query waits for its result, and sends no query itself. */
void concurrent_hw_counter_readers_share_one_query(Test &test)
{
	Device device;
	ASSERT_TRUE(device.ok());
	EXPECT_EQ(ib_set_hw_stats_lifespan(device, 1, long_ms), 0);
	Question question;
	soft_interpose(device, SOFT_GET_HW_STATS, Question::wait, &question);
	Reader readers[] = {Reader{device}, Reader{device}, Reader{device}};
	kern::Thread threads[3];
	unsigned int i = 0;
	for (Reader &reader : readers) {
		auto thread = kern::Thread::create("reader", kern::method<&Reader::read>, &reader);
		ASSERT_OK(thread);
		threads[i++] = thread.take();
		reader.begun.wait();
		if (i == 1)
			question.begun.wait();
	}
	/* The other readers had time to query. */
	kern::sleep_ms(2);
	EXPECT_EQ(questions(device), 1ul);
	question.may_end.complete_all();
	for (kern::Thread &thread : threads)
		EXPECT_EQ(thread.stop(), 0);
	soft_interpose(device, SOFT_GET_HW_STATS, nullptr, nullptr);
	for (const Reader &reader : readers)
		EXPECT_EQ(reader.value, 1ul);
}

} // namespace

SOFT_SUITES(verbs_hw_counters, KUNIT_CASE(hw_counters_are_read_by_port_and_index),
	    KUNIT_CASE(hw_counters_are_read_once_per_lifespan),
	    KUNIT_CASE(hw_counter_errors_are_cached_for_the_lifespan),
	    KUNIT_CASE(concurrent_hw_counter_readers_share_one_query));
