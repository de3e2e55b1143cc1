// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that completions of destroyed QPs are kept until they are polled.
#include <kern/kunit.hpp>
#include "../stale_completions.hpp"

using mellanox_icm::StaleCompletions;

namespace
{

constexpr u32 log_entries = 2, entries = 1 << log_entries;
/* Indices of a ring wrap around. */
constexpr u32 start = ~0u - 1;

ib_wc completion(u64 id)
{
	ib_wc wc{};
	wc.wr_id = id;
	return wc;
}

/* A completion is returned once, at the index of its entry, wherever the entry has moved. */
void saved_completion_of_a_destroyed_qp_is_returned_once_at_the_new_index_of_its_moved_cqe(
	kern::kunit::Test &test)
{
	auto small = StaleCompletions::create(log_entries);
	auto large = StaleCompletions::create(log_entries + 1);
	ASSERT_OK(small);
	ASSERT_OK(large);
	ib_wc wc{};

	small.value().save(start, completion(7));
	small.value().save(start + 1, completion(8));
	small.value().move(start + 1, small.value(), start + 3);
	EXPECT_FALSE(small.value().take(start + 1, wc));
	EXPECT_TRUE(small.value().take(start + 3, wc));
	EXPECT_EQ(wc.wr_id, u64{8});
	EXPECT_FALSE(small.value().take(start + 3, wc));
	small.value().move(start, large.value(), start + 5);
	EXPECT_FALSE(small.value().take(start, wc));
	EXPECT_TRUE(large.value().take(start + 5, wc));
	EXPECT_EQ(wc.wr_id, u64{7});
}

/* Flushed requests use the slots after the last entry, and no others. */
void flushed_completions_of_destroyed_qps_are_added_only_while_the_cq_has_free_slots(
	kern::kunit::Test &test)
{
	auto made = StaleCompletions::create(log_entries);
	ASSERT_OK(made);
	StaleCompletions &stale = made.value();
	ib_wc wc[entries];

	EXPECT_EQ(stale.clip(start, start + 3), start + 3);
	stale.set_end(start + 1);
	stale.set_end(start + 3);
	EXPECT_EQ(stale.clip(start, start + 3), start + 1);
	EXPECT_EQ(stale.clip(start + 2, start + 3), start + 2);
	stale.save(start, completion(1));
	u64 id = 2;
	for (; stale.has_free_slot(start); id++)
		stale.add_flushed(completion(id));
	EXPECT_EQ(id, u64{entries + 1});
	EXPECT_FALSE(stale.take(start + 1, wc[0]));
	EXPECT_TRUE(stale.take(start, wc[0]));
	EXPECT_EQ(wc[0].wr_id, u64{1});
	// When that entry has been polled, its slot is free.
	ASSERT_TRUE(stale.has_free_slot(start + 1));
	stale.add_flushed(completion(id));
	EXPECT_FALSE(stale.has_free_slot(start + 1));
	EXPECT_EQ(stale.take_flushed(3, wc), 3);
	EXPECT_EQ(stale.take_flushed(3, wc + 3), 1);
	EXPECT_EQ(stale.take_flushed(3, wc), 0);
	for (u32 i = 0; i < entries; i++)
		EXPECT_EQ(wc[i].wr_id, u64{2} + i);
	EXPECT_TRUE(stale.has_free_slot(start + 1));
}

} // namespace

KUNIT_SUITE(
	mellanox_stale_completions,
	KUNIT_CASE(
		saved_completion_of_a_destroyed_qp_is_returned_once_at_the_new_index_of_its_moved_cqe),
	KUNIT_CASE(
		flushed_completions_of_destroyed_qps_are_added_only_while_the_cq_has_free_slots));
