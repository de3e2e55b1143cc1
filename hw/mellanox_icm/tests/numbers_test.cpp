// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the allocators of object numbers and of page table ranges.
#include <kern/kunit.hpp>
#include <kern/time.hpp>
#include "../buddy.hpp"
#include "../number_allocator.hpp"

using mellanox_icm::Buddy;
using mellanox_icm::NumberAllocator;

/* Every number of the range is allocated once. Then allocation fails. */
static void number_allocator_returns_each_number_once(kern::kunit::Test &test)
{
	auto made = NumberAllocator::create(70, 201);
	ASSERT_OK(made);
	auto numbers = made.take();
	auto seen = kern::make_array<bool>(kern::Gfp::kernel, 201).take();
	for (u32 i = 70; i < 201; i++) {
		const auto number = numbers->allocate();
		ASSERT_OK(number);
		ASSERT_GE(number.value(), 70u);
		ASSERT_LT(number.value(), 201u);
		ASSERT_FALSE(seen[number.value()]);
		seen[number.value()] = true;
	}
	EXPECT_ERROR(numbers->allocate(), -ENOSPC);
	numbers->free(133);
	const auto again = numbers->allocate();
	ASSERT_OK(again);
	EXPECT_EQ(again.value(), 133u);
}

/* A freed number is reused only after all other free numbers. */
static void freed_number_is_reused_after_all_other_free_numbers(kern::kunit::Test &test)
{
	auto numbers = NumberAllocator::create(0, 64).take();
	const u32 first = numbers->allocate().take();
	numbers->free(first);
	for (u32 i = 1; i < 64; i++)
		ASSERT_NE(numbers->allocate().take(), first);
	EXPECT_EQ(numbers->allocate().take(), first);
}

/* An empty range is refused. */
static void empty_number_range_is_rejected(kern::kunit::Test &test)
{
	EXPECT_ERROR(NumberAllocator::create(5, 5), -EINVAL);
}

/*
 * Ranges are aligned to their size and do not overlap. When all have been freed, the whole range
 * can be allocated again.
 */
static void buddy_allocator_ranges_are_aligned_and_disjoint(kern::kunit::Test &test)
{
	constexpr unsigned int log_size = 10;
	auto buddy = Buddy::create(log_size).take();
	kern::SeededRandom random(test.seed());
	auto owner = kern::make_array<u16>(kern::Gfp::kernel, 1 << log_size).take();
	struct Run {
		u32 first;
		unsigned int order;
		bool live;
	};
	auto runs = kern::make_array<Run>(kern::Gfp::kernel, 256).take();
	for (unsigned int round = 0; round < 20000; round++) {
		const u16 slot = static_cast<u16>(random.below(256));
		Run &run = runs[slot];
		if (run.live) {
			for (u32 i = 0; i < 1u << run.order; i++)
				ASSERT_EQ(std::exchange(owner[run.first + i], u16{0}),
					  static_cast<u16>(slot + 1));
			buddy->free(run.first, run.order);
			run.live = false;
			continue;
		}
		run.order = random.below(6);
		const auto got = buddy->allocate(run.order);
		if (!got)
			continue;
		run.first = got.value();
		run.live = true;
		ASSERT_EQ(run.first & ((1u << run.order) - 1), 0u);
		for (u32 i = 0; i < 1u << run.order; i++)
			ASSERT_EQ(std::exchange(owner[run.first + i], static_cast<u16>(slot + 1)),
				  u16{0});
	}
	for (const Run &run : runs)
		if (run.live)
			buddy->free(run.first, run.order);
	const auto whole = buddy->allocate(log_size);
	ASSERT_OK(whole);
	EXPECT_EQ(whole.value(), 0u);
	EXPECT_ERROR(buddy->allocate(0), -ENOSPC);
}

/*
 * A caller without access to the reserve does not get the last numbers, wherever they are. Others
 * do, and freed numbers count again.
 */
static void
last_free_numbers_are_refused_to_callers_that_must_leave_a_reserve(kern::kunit::Test &test)
{
	auto buddy = Buddy::create(6).take();
	for (u32 i = 0; i < 60; i++)
		ASSERT_OK(buddy->allocate(0, 4));
	EXPECT_ERROR(buddy->allocate(0, 4), -ENOSPC);
	ASSERT_OK(buddy->allocate(1));
	EXPECT_ERROR(buddy->allocate(0, 4), -ENOSPC);
	for (u32 i = 0; i < 3; i++)
		buddy->free(i, 0);
	ASSERT_OK(buddy->allocate(0, 4));
	EXPECT_ERROR(buddy->allocate(0, 4), -ENOSPC);
	ASSERT_OK(buddy->allocate(0));
}

KUNIT_SUITE(mellanox_numbers,
	    KUNIT_CASE(last_free_numbers_are_refused_to_callers_that_must_leave_a_reserve),
	    KUNIT_CASE(number_allocator_returns_each_number_once),
	    KUNIT_CASE(freed_number_is_reused_after_all_other_free_numbers),
	    KUNIT_CASE(empty_number_range_is_rejected),
	    KUNIT_CASE(buddy_allocator_ranges_are_aligned_and_disjoint));
