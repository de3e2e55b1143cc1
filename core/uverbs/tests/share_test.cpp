// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fixture.hpp"

using namespace uverbs;
using namespace uverbs::test;

namespace
{

constexpr u32 root = 0, somebody = 1000;

/*
 * One more than a user may have of a kind, over two files of his: it is refused, and what is given
 * back can be had again.
 */
template<class T, class Other = T>
void try_bound(kern::kunit::Test &test, kern::Budget Share::*budget, u32 bound)
{
	Account account;
	Share share(somebody), other(root);
	ObjectTable first(share), second(share), foreign(other);

	EXPECT_EQ((share.*budget).limit(), bound);
	for (u32 i = 0; i < bound; i++) {
		const int error = i % 2 ? make<T>(first, account, 1).error()
					: make<Other>(second, account, 1).error();
		ASSERT_EQ(error, 0);
	}
	EXPECT_ERROR(make<T>(first, account, 1), -EDQUOT);
	EXPECT_ERROR(make<Other>(second, account, 1), -EDQUOT);
	EXPECT_EQ(account.alive, bound);
	EXPECT_OK(make<T>(foreign, account, 1)); // another user has his own
	EXPECT_OK(destroy<Other>(second, 0));
	EXPECT_OK(make<T>(first, account, 1));
	EXPECT_ERROR(make<T>(first, account, 1), -EDQUOT);
	for (ObjectTable *table : {&first, &second, &foreign}) {
		EXPECT_TRUE(table->end_all());
		table->clear();
	}
	EXPECT_EQ(account.alive, 0u);
	EXPECT_TRUE(share.idle());
}

void a_user_has_so_many_pds(kern::kunit::Test &test)
{
	try_bound<test::Pd>(test, &Share::pds, 4096);
}

void a_user_has_so_many_address_handles(kern::kunit::Test &test)
{
	try_bound<test::Ah>(test, &Share::ahs, 4096);
}

/* Regions and windows are of the same numbers. */
void a_user_has_so_many_keys(kern::kunit::Test &test)
{
	try_bound<Mr, Mw>(test, &Share::keys, 32768);
}

void a_user_has_so_many_queues(kern::kunit::Test &test)
{
	try_bound<test::Cq>(test, &Share::cqs, 1024);
	/* The card has a CQ for each XRC domain, too. */
	try_bound<test::Cq, Thing<Kind::xrcd>>(test, &Share::cqs, 1024);
	try_bound<test::Srq>(test, &Share::srqs, 512);
	try_bound<test::Qp>(test, &Share::qps, 1024);
}

/*
 * A user's QPs get a quarter of a group's places, and of each group anew; another user gets his,
 * whatever the first has.
 */
void a_user_has_a_quarter_of_a_group(kern::kunit::Test &test)
{
	constexpr u32 group_size = 120, quarter = 30;
	const ib_gid group = {.raw = {0xff, 0x12, 1}}, elsewhere = {.raw = {0xff, 0x12, 2}};
	Share share(somebody), other(root);
	auto places = kern::make_array<GroupPlaces::Place>(kern::Gfp::kernel, quarter - 1);
	auto freed = kern::make<GroupPlaces::Place>(kern::Gfp::kernel);
	GroupPlaces::Place another, of_other, of_small;

	ASSERT_OK(places);
	ASSERT_OK(freed);
	EXPECT_OK(share.groups.take(*freed.value(), group, group_size));
	for (u32 i = 0; i < quarter - 1; i++)
		EXPECT_OK(share.groups.take(places.value()[i], group, group_size));
	EXPECT_ERROR(share.groups.take(another, group, group_size), -EDQUOT);
	EXPECT_OK(other.groups.take(of_other, group, group_size));
	freed.value() = {};
	EXPECT_OK(share.groups.take(another, group, group_size));
	/* One is always to be had. */
	EXPECT_OK(share.groups.take(of_small, elsewhere, 2));
}

/*
 * All files of a user have one share; who has lost something is remembered, who has nothing is not.
 */
void a_share_is_its_users(kern::kunit::Test &test)
{
	Shares shares;
	kern::Portion lost;
	{
		const auto first = shares.enter(somebody), second = shares.enter(somebody),
			   other = shares.enter(root);
		ASSERT_OK(first);
		ASSERT_OK(second);
		ASSERT_OK(other);
		EXPECT_EQ(&*first.value(), &*second.value());
		EXPECT_NE(&*first.value(), &*other.value());
		EXPECT_EQ(other.value()->user, root);
		lost = first.value()->contexts.take().take();
	}
	{
		const auto again = shares.enter(somebody);
		ASSERT_OK(again);
		EXPECT_EQ(again.value()->contexts.taken(), 1u);
		lost = {};
		EXPECT_TRUE(again.value()->idle());
	}
}

} // namespace

KUNIT_SUITE(uverbs_shares, KUNIT_CASE(a_user_has_so_many_pds),
	    KUNIT_CASE(a_user_has_so_many_address_handles), KUNIT_CASE(a_user_has_so_many_keys),
	    KUNIT_CASE(a_user_has_so_many_queues), KUNIT_CASE(a_user_has_a_quarter_of_a_group),
	    KUNIT_CASE(a_share_is_its_users));
