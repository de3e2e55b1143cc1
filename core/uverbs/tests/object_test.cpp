// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the handles of objects, and the order in which objects are destroyed.
#include "fixture.hpp"

using namespace uverbs;
using namespace uverbs::test;

namespace
{

/*
 * All kinds of objects share one number space, and the lowest free number is allocated first. An
 * object of another kind is not found by its number.
 */
void new_object_gets_the_lowest_free_handle(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	ObjectTable table(owner.share);

	EXPECT_EQ(make<test::Pd>(table, account, 1).value(), 0u);
	EXPECT_EQ(make<test::Cq>(table, account, 2).value(), 1u);
	EXPECT_EQ(make<test::Pd>(table, account, 3).value(), 2u);
	EXPECT_ERROR(table.find<test::Pd>(1), -EINVAL);
	EXPECT_ERROR(table.find<test::Pd>(3), -ENOENT);
	EXPECT_ERROR(table.find<test::Pd>(~0u), -ENOENT);
	EXPECT_OK(destroy<test::Cq>(table, 1));
	EXPECT_ERROR(table.find<test::Cq>(1), -ENOENT);
	EXPECT_EQ(make<test::Qp>(table, account, 4).value(), 1u);
	EXPECT_TRUE(table.end_all());
	table.clear();
	EXPECT_EQ(account.alive, 0u);
}

/*
 * An object in use by a command, or with dependents, is not destroyed; no other command gets one
 * that is being created or destroyed.
 */
void destruction_of_an_object_in_use_returns_ebusy(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	ObjectTable table(owner.share);
	const u32 pd = make<test::Pd>(table, account, 1).value();
	const u32 mr = make<Mr>(table, account, 2, table.find<test::Pd>(pd).take()).value();

	EXPECT_ERROR(destroy<test::Pd>(table, pd), -EBUSY);
	{
		const auto used = table.find<Mr>(mr);
		ASSERT_OK(used);
		EXPECT_ERROR(destroy<Mr>(table, mr), -EBUSY);
	}
	Mr *claimed = table.claim<Mr>(mr).take();
	EXPECT_ERROR(table.find<Mr>(mr), -EBUSY);
	EXPECT_ERROR(table.claim<Mr>(mr), -EBUSY);
	table.leave(*claimed);
	EXPECT_OK(table.find<Mr>(mr));
	{
		const auto allocation = Allocation<test::Cq>::create(table, account, 3);
		ASSERT_OK(allocation);
		EXPECT_ERROR(table.find<test::Cq>(allocation.value()->handle()), -EBUSY);
	}
	EXPECT_EQ(account.alive, 2u); // the allocation was not committed
	EXPECT_OK(destroy<Mr>(table, mr));
	EXPECT_OK(destroy<test::Pd>(table, pd));
	EXPECT_EQ(account.alive, 0u);
}

/* A command that the device refuses changes nothing and can be repeated. */
void failed_destruction_of_an_object_can_be_retried(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	ObjectTable table(owner.share);
	const u32 mr = make<Mr>(table, account, 7).value();

	account.refused = 1u << 7;
	account.refusals = 1;
	EXPECT_ERROR(destroy<Mr>(table, mr), -EBUSY);
	EXPECT_OK(table.find<Mr>(mr));
	EXPECT_OK(destroy<Mr>(table, mr));
	EXPECT_EQ(account.alive, 0u);
}

/*
 * When a file is closed, objects are destroyed in the reverse order of their creation. Numbers stay
 * allocated until they are released.
 */
void closing_a_file_destroys_objects_in_reverse_creation_order(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	ObjectTable table(owner.share);
	const u32 pd = make<test::Pd>(table, account, 1).value();

	for (u32 name = 2; name <= 5; name++)
		ASSERT_OK(make<Mr>(table, account, name, table.find<test::Pd>(pd).take()));
	EXPECT_TRUE(table.end_all());
	ASSERT_EQ(account.count, 5u);
	for (u32 i = 0; i < 5; i++)
		EXPECT_EQ(account.ended[i], 5 - i);
	EXPECT_EQ(account.alive, 5u);
	EXPECT_OK(destroy<Mr>(table, 2));
	EXPECT_EQ(account.alive, 4u);
	EXPECT_EQ(account.count, 5u); // a destroyed object is not destroyed again
	table.clear();
	EXPECT_EQ(account.alive, 0u);
}

/*
 * An object that another one blocks is destroyed in a later round, as long as any can be destroyed.
 */
void closing_a_file_retries_the_failed_destruction_of_an_object(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	ObjectTable table(owner.share);

	for (u32 name = 1; name <= 3; name++)
		ASSERT_OK(make<Mw>(table, account, name));
	account.refused = 1u << 3;
	account.refusals = 1;
	EXPECT_TRUE(table.end_all());
	ASSERT_EQ(account.count, 3u);
	EXPECT_EQ(account.ended[0], 2u);
	EXPECT_EQ(account.ended[2], 3u);
	table.clear();
	EXPECT_EQ(account.alive, 0u);
}

/*
 * An object that the driver fails to destroy is lost: neither it nor its parents are freed or found
 * any more, because the device may still use it. The others are destroyed. It is still charged to
 * the user.
 */
void object_that_the_driver_fails_to_destroy_is_never_freed(kern::kunit::Test &test)
{
	Account account;
	Owner owner;
	Mr *kept;
	test::Pd *kept_pd;
	{
		ObjectTable table(owner.share);
		const u32 pd = make<test::Pd>(table, account, 1).value();
		const u32 mr = make<Mr>(table, account, 2, table.find<test::Pd>(pd).take()).value();
		ASSERT_OK(make<test::Cq>(table, account, 3));
		kept = table.find<Mr>(mr).value().get();
		kept_pd = table.find<test::Pd>(pd).value().get();
		/* The region cannot be destroyed, so the PD that it uses is lost, too. */
		account.refused = 1u << 1 | 1u << 2;
		account.refusals = 100;
		EXPECT_FALSE(table.end_all());
		EXPECT_ERROR(table.find<Mr>(mr), -ENOENT);
		EXPECT_ERROR(table.find<test::Pd>(pd), -ENOENT);
		table.clear();
		EXPECT_EQ(account.alive, 2u);
		EXPECT_EQ(owner.share.keys.taken(), 1u);
		EXPECT_EQ(owner.share.pds.taken(), 1u);
		EXPECT_EQ(owner.share.cqs.taken(), 0u);
		EXPECT_FALSE(owner.share.idle());
	}
	/* The test destroys the lost objects. */
	kern::destroy(kept);
	kern::destroy(kept_pd);
	EXPECT_EQ(account.alive, 0u);
	EXPECT_TRUE(owner.share.idle());
}

} // namespace

KUNIT_SUITE(uverbs_objects, KUNIT_CASE(new_object_gets_the_lowest_free_handle),
	    KUNIT_CASE(destruction_of_an_object_in_use_returns_ebusy),
	    KUNIT_CASE(failed_destruction_of_an_object_can_be_retried),
	    KUNIT_CASE(closing_a_file_destroys_objects_in_reverse_creation_order),
	    KUNIT_CASE(closing_a_file_retries_the_failed_destruction_of_an_object),
	    KUNIT_CASE(object_that_the_driver_fails_to_destroy_is_never_freed));
