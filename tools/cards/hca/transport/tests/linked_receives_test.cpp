// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests shared receive queues that are linked lists.
#include <gtest/gtest.h>

#include <array>

#include "cards/hca/linked_receives.hpp"

namespace weft::hca
{

// A list of four entries, each of which is linked to the previous one.
class BackwardList final : public LinkedReceives<BackwardList>
{
public:
	explicit BackwardList(std::uint16_t limit = 0)
	    : LinkedReceives{{.log_size = 2, .log_stride = 5, .limit = limit}, 7, 8, 9, 10}
	{
	}

	std::optional<std::uint32_t> record = 0;
	std::array<std::optional<std::uint32_t>, 4> links = {3, 0, 1, 2};
	unsigned limits_reported = 0;
	unsigned breaks_reported = 0;

private:
	friend LinkedReceives<BackwardList>;
	std::optional<std::uint32_t> posted() const { return record; }
	std::optional<std::uint32_t> read_link(std::uint16_t index) { return links.at(index); }
	void report_limit() { ++limits_reported; }
	void report_broken_list() { ++breaks_reported; }
};

TEST(LinkedReceives, LinkedWqesAreConsumedInLinkOrder)
{
	BackwardList list;
	EXPECT_FALSE(list.take());
	// The record has 16 bits, and higher bits are ignored.
	list.record = 0x50003;
	EXPECT_EQ(list.available(), 3u);
	EXPECT_EQ(list.take(), 0);
	EXPECT_EQ(list.take(), 3);
	EXPECT_EQ(list.take(), 2);
	EXPECT_FALSE(list.take());
	EXPECT_FALSE(list.failed());
	EXPECT_EQ(list.taken(), 3);
}

/* An invalid link or record is clamped to an entry of the list. */
TEST(LinkedReceives, OutOfRangeWqeLinkOrDoorbellRecordIsClampedToTheQueue)
{
	BackwardList list;
	list.record = 0xffff;
	EXPECT_EQ(list.available(), list.size());
	list.links[0] = 0xfffffffe;
	EXPECT_EQ(list.take(), 0);
	EXPECT_EQ(list.take(), 2);
	EXPECT_EQ(list.wqe_offset(6), 2u * list.stride());
}

TEST(LinkedReceives, SrqLimitEventIsRaisedOnceEachTimeTheLimitIsArmed)
{
	BackwardList list(2);
	list.record = 3;
	EXPECT_TRUE(list.take());
	EXPECT_EQ(list.limits_reported, 0u);
	EXPECT_TRUE(list.take());
	EXPECT_TRUE(list.take());
	EXPECT_EQ(list.limits_reported, 1u);
	// The number of entries is below the new limit at once.
	list.arm_limit(1);
	EXPECT_EQ(list.limits_reported, 2u);
	EXPECT_EQ(list.limit(), 0);
}

TEST(LinkedReceives, UnreadableWqeLinkFailsTheReceiveQueuePermanently)
{
	BackwardList list;
	ReceiveWork work;
	list.record = 4;
	list.links[3] = std::nullopt;
	EXPECT_EQ(list.take(work, true), Taken::yes);
	EXPECT_EQ(work.index, 0);
	EXPECT_EQ(work.pd, 8u);
	EXPECT_EQ(work.cqn, 10u);
	EXPECT_EQ(work.srqn, 7u);
	EXPECT_EQ(list.take(work, false), Taken::broken);
	EXPECT_EQ(list.take(work, false), Taken::broken);
	EXPECT_TRUE(list.failed());
	EXPECT_EQ(list.breaks_reported, 1u);
	EXPECT_EQ(list.available(), 0u);
}

TEST(LinkedReceives, ReceiveOfANonXrcQpCompletesToTheCqOfThatQp)
{
	BackwardList list;
	ReceiveWork work;
	work.cqn = 3;
	EXPECT_EQ(list.take(work, false), Taken::none);
	list.record = 1;
	EXPECT_EQ(list.take(work, false), Taken::yes);
	EXPECT_EQ(work.cqn, 3u);
	EXPECT_EQ(work.srqn, 0u);
}

} // namespace weft::hca
