// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fixture.hpp"

using namespace uverbs;
using namespace uverbs::test;

namespace
{

constexpr u32 root = 0, somebody = 1000;

/* One more than a user may have of a kind, over two files of his: it is refused, and what is given back can be had again. */
template <class T, class Other = T>
void try_bound(kern::kunit::Test &test, kern::Budget Share::*budget, u32 bound)
{
	Account account;
	Share share(somebody), other(root);
	ObjectTable first(share), second(share), foreign(other);

	EXPECT_EQ((share.*budget).limit(), bound);
	for (u32 i = 0; i < bound; i++) {
		const int error = i % 2 ? make<T>(first, account, 1).error() : make<Other>(second, account, 1).error();
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

/* Regions and windows are of the same numbers. */
void a_user_has_so_many_keys(kern::kunit::Test &test)
{
	try_bound<Mr, Mw>(test, &Share::keys, 32768);
}

void a_user_has_so_many_queues(kern::kunit::Test &test)
{
	try_bound<test::Cq>(test, &Share::cqs, 1024);
	try_bound<test::Srq>(test, &Share::srqs, 512);
	try_bound<test::Qp>(test, &Share::qps, 1024);
	try_bound<Thing<Kind::xrcd>>(test, &Share::xrcds, 1024);
}

/* All files of a user have one share; who has lost something is remembered, who has nothing is not. */
void a_share_is_its_users(kern::kunit::Test &test)
{
	Shares shares;
	kern::Portion lost;
	{
		const auto first = shares.enter(somebody), second = shares.enter(somebody), other = shares.enter(root);
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

KUNIT_SUITE(uverbs_shares, KUNIT_CASE(a_user_has_so_many_pds), KUNIT_CASE(a_user_has_so_many_keys),
	    KUNIT_CASE(a_user_has_so_many_queues), KUNIT_CASE(a_share_is_its_users));
