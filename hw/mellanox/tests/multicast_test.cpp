// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/kunit_fixture.hpp>
#include <kern/thread.hpp>
#include "../mtt.hpp"
#include "../multicast.hpp"
#include "card_of_memory.hpp"

using mellanox::test::CardOfMemory;
namespace wire = hw::mellanox;

namespace
{

struct NoFlags final : mellanox::GroupFormat {
	u32 count(const u8 *, u32) const override { return 0; }
	void set_count(u8 *, u32, u32) const override {}
	u32 member_flags(bool) const override { return 0; }
};

struct Groups final : CardOfMemory, mellanox::FailureListener {
	NoFlags format;
	kern::Owned<mellanox::MulticastGroups> groups;

	bool begin()
	{
		if (!CardOfMemory::begin(mellanox::HandOver::go, *this, 0))
			return false;
		auto made = mellanox::MulticastGroups::create(
			*commands, {.base = 0, .entry_bytes = 128, .log_entries = 4}, format);
		if (!made)
			return false;
		groups = made.take();
		return true;
	}
	void card_failed(const char *) override {}
	/* In a task for which there is no memory. */
	int detach()
	{
		kern_fail_allocation(1);
		const auto left = groups->detach({}, 7);
		kern_fail_allocation(0);
		return left ? 0 : left.error();
	}
};

/*
 * Who ends a QP has to get it out of its groups, however little memory there is: else the QP, and
 * all that it uses, would be lost for ever. The card is asked, and says in its own words that the
 * QP is in no group.
 */
void who_leaves_needs_no_memory(kern::kunit::Test &test)
{
	Groups card;
	ASSERT_TRUE(card.begin());
	auto leaving = kern::Thread::create("weft-leaving", kern::method<&Groups::detach>, &card);
	ASSERT_OK(leaving);
	/* Or it has given up. */
	ASSERT_TRUE(kern::kunit::eventually([&] { return card.is_asked(); }));
	card.answer(card.take()); /* the hash: 0 */
	card.answer(card.take()); /* the entry there: empty, the last of its chain */
	EXPECT_EQ(leaving.value().stop(), -EINVAL);
}

/*
 * A user has a quarter of the page entries, and another his own; what goes back may be had again.
 */
void a_user_has_his_share_of_the_pages(kern::kunit::Test &test)
{
	kern::Shares<mellanox::PageShare> users{KERN_LOCK_CLASS("mellanox.page_shares_test")};
	constexpr u32 quarter = 1u << 18;
	const auto take = [&](u32 user, u32 entries) {
		auto member = users.enter(user).take();
		return member->entries.take(entries);
	};
	{
		auto all = take(1000, quarter);
		ASSERT_OK(all);
		EXPECT_ERROR(take(1000, 1), -EDQUOT);
		EXPECT_OK(take(1001, quarter));
	}
	EXPECT_OK(take(1000, quarter));
}

} // namespace

KUNIT_SUITE(mellanox_shared, KUNIT_CASE(who_leaves_needs_no_memory),
	    KUNIT_CASE(a_user_has_his_share_of_the_pages));
