// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests how adaptive moderation chooses the delay of events for different kinds of traffic.
#include <kern/kunit.hpp>
#include <kern/time.hpp>
#include "../moderation.hpp"

using ipoib::Moderator;

namespace
{

constexpr u64 ms = 1'000'000;
constexpr u32 top = Moderator::level_count - 1;

/*
 * Simulates an interval of traffic with a constant rate, in which each event has as many
 * completions as the level permits.
 */
u32 gathers(Moderator &moderator)
{
	const u64 completions_an_event = 4u << moderator.level();
	const u64 completions = 64 * completions_an_event;
	return moderator.interval(completions * 1000, 64, completions, completions * 1000);
}

/* Simulates an interval in which each event has one completion, whatever the level. */
u32 alone(Moderator &moderator)
{
	return moderator.interval(5 * ms, 64, 64, 64 * 100);
}

/* A stream that has the same throughput with fewer events gets the longest delay. */
void stream_whose_throughput_does_not_suffer_gets_the_longest_interrupt_delay(
	kern::kunit::Test &test)
{
	Moderator moderator;
	EXPECT_EQ(moderator.level(), 0u);
	for (unsigned i = 0; i < 4 * Moderator::level_count; i++)
		gathers(moderator);
	EXPECT_EQ(moderator.level(), top);
}

/* If each event has one completion, delays are tried rarely, and less often each time. */
void completions_of_request_response_traffic_are_rarely_delayed(kern::kunit::Test &test)
{
	Moderator moderator;
	unsigned delayed = 0;
	for (unsigned i = 0; i < 1000; i++)
		delayed += alone(moderator) != 0;
	EXPECT_GE(delayed, 1u);
	EXPECT_LT(delayed, 15u);
}

/* The change from a stream to request-response traffic is detected within one interval. */
void moderation_ends_when_the_stream_stops(kern::kunit::Test &test)
{
	Moderator moderator;
	while (moderator.level() != top)
		gathers(moderator);
	EXPECT_EQ(alone(moderator), 0u);
}

/* A delay that reduces throughput is dropped. */
void interrupt_moderation_that_reduces_throughput_is_disabled(kern::kunit::Test &test)
{
	Moderator moderator;
	u32 level = 0;
	while ((level = moderator.interval(10 * ms, 64, 640, 640'000)) == 0)
		;
	ASSERT_EQ(level, 1u);
	EXPECT_EQ(moderator.interval(10 * ms, 32, 512, 512'000), 0u);
}

/* A delay that does not coalesce completions is dropped as well. */
void interrupt_delay_that_coalesces_no_completions_is_removed(kern::kunit::Test &test)
{
	Moderator moderator;
	u32 level = 0;
	while ((level = moderator.interval(10 * ms, 64, 640, 640'000)) == 0)
		;
	ASSERT_EQ(level, 1u);
	EXPECT_EQ(moderator.interval(10 * ms, 64, 640, 640'000), 0u);
}

/* Sparse traffic resets moderation to its initial state at once. */
void sparse_traffic_resets_moderation(kern::kunit::Test &test)
{
	Moderator moderator;
	while (moderator.level() != top)
		gathers(moderator);
	EXPECT_EQ(moderator.interval(200 * ms, 64, 6400, 6'400'000), 0u);
}

/* Every input gives a valid moderation level. */
void any_input_yields_a_valid_moderation_level(kern::kunit::Test &test)
{
	Moderator moderator;
	kern::SeededRandom random(test.seed());
	for (unsigned i = 0; i < 10'000; i++)
		ASSERT_LT(moderator.interval(random.below(200'000'000), random.below(1000),
					     random.below(100'000), random.next() >> 24),
			  Moderator::level_count);
	EXPECT_LT(moderator.interval(0, 0, 0, 0), Moderator::level_count);
}

} // namespace

KUNIT_SUITE(ipoib_moderation,
	    KUNIT_CASE(stream_whose_throughput_does_not_suffer_gets_the_longest_interrupt_delay),
	    KUNIT_CASE(completions_of_request_response_traffic_are_rarely_delayed),
	    KUNIT_CASE(moderation_ends_when_the_stream_stops),
	    KUNIT_CASE(interrupt_moderation_that_reduces_throughput_is_disabled),
	    KUNIT_CASE(interrupt_delay_that_coalesces_no_completions_is_removed),
	    KUNIT_CASE(sparse_traffic_resets_moderation),
	    KUNIT_CASE(any_input_yields_a_valid_moderation_level));
