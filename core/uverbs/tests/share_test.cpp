// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the share of a device's resources that each user can take.
#include "fixture.hpp"

using namespace uverbs;
using namespace uverbs::test;

namespace
{

/* Returns users other than `somebody`. */
constexpr kern_user nth_user(u32 number)
{
	return {.id = 2000 + number, .privileged = false};
}

/* Returns the attributes of a device with @limit objects of each kind. */
ib_device_attr attr_of(int limit)
{
	ib_device_attr attr{};

	attr.max_pd = attr.max_mr = attr.max_cq = attr.max_srq = attr.max_qp = limit;
	return attr;
}

/*
 * A user gets a half of what users may have, by all files together; the next user gets a half of
 * the rest, and root gets all that it asks for. Returned amounts are available again.
 */
template<class T, class Other = T>
void try_bound(kern::kunit::Test &test, kern::Pool Pools::*pool, kern::Quota Share::*quota)
{
	Account account;
	const auto pools = kern::make<Pools>(kern::Gfp::kernel, attr_of(160));
	ASSERT_OK(pools);
	Pools &all = *pools.value();
	const auto shares = kern::make_array<kern::Owned<Share>>(kern::Gfp::kernel, 3);
	ASSERT_OK(shares);
	u32 next = 0;
	for (const kern_user &user : {somebody, nth_user(0), root}) {
		auto share = kern::make<Share>(kern::Gfp::kernel, user, all);
		ASSERT_OK(share);
		shares.value()[next++] = share.take();
	}
	Share &share = *shares.value()[0], &other = *shares.value()[1],
	      &privileged = *shares.value()[2];
	ObjectTable first(share), second(share), foreign(other), of_root(privileged);
	const u32 limit = (all.*pool).limit(), half = (all.*pool).open() / 2;

	for (u32 i = 0; i < half; i++) {
		const int error = i % 2 ? make<T>(first, account, 1).error()
					: make<Other>(second, account, 1).error();
		ASSERT_EQ(error, 0);
	}
	EXPECT_ERROR(make<T>(first, account, 1), -EDQUOT);
	EXPECT_ERROR(make<Other>(second, account, 1), -EDQUOT);
	EXPECT_EQ(account.alive, half);
	EXPECT_EQ((share.*quota).taken(), half);
	u32 got = 0;
	while (make<T>(foreign, account, 1))
		got++;
	EXPECT_GE(got, half / 2);
	EXPECT_LE(got, half / 2 + 1);
	for (u32 i = (all.*pool).taken(); i < limit; i++)
		ASSERT_OK(make<T>(of_root, account, 1));
	EXPECT_OK(destroy<Other>(second, 0));
	EXPECT_ERROR(make<T>(first, account, 1), -EDQUOT);
	of_root.end_all();
	of_root.clear();
	foreign.end_all();
	foreign.clear();
	EXPECT_OK(make<T>(first, account, 1));
	for (ObjectTable *table : {&first, &second}) {
		EXPECT_TRUE(table->end_all());
		table->clear();
	}
	EXPECT_EQ(account.alive, 0u);
	EXPECT_EQ((all.*pool).taken(), 0u);
	EXPECT_TRUE(share.idle() && other.idle() && privileged.idle());
}

void user_can_allocate_at_most_half_of_the_pds(kern::kunit::Test &test)
{
	try_bound<test::Pd>(test, &Pools::pds, &Share::pds);
}

void user_can_allocate_at_most_half_of_the_address_handles(kern::kunit::Test &test)
{
	try_bound<test::Ah>(test, &Pools::ahs, &Share::ahs);
}

/* Regions and windows share a limit. */
void user_can_allocate_at_most_half_of_the_memory_keys(kern::kunit::Test &test)
{
	try_bound<Mr, Mw>(test, &Pools::keys, &Share::keys);
}

void user_can_allocate_at_most_half_of_the_cqs_half_of_the_srqs_and_half_of_the_qps(
	kern::kunit::Test &test)
{
	try_bound<test::Cq>(test, &Pools::cqs, &Share::cqs);
	/* The card uses a CQ for each XRC domain, too. */
	try_bound<test::Cq, Thing<Kind::xrcd>>(test, &Pools::cqs, &Share::cqs);
	try_bound<test::Srq>(test, &Pools::srqs, &Share::srqs);
	try_bound<test::Qp>(test, &Pools::qps, &Share::qps);
}

/* The device's limits apply to root, and to all users together. */
void object_limits_come_from_the_device_attributes(kern::kunit::Test &test)
{
	ib_device_attr attr{};
	attr.max_pd = 100;
	attr.max_mr = 200;
	attr.max_cq = 300;
	attr.max_srq = 400;
	attr.max_qp = 500;
	const auto pools = kern::make<Pools>(kern::Gfp::kernel, attr);
	ASSERT_OK(pools);
	EXPECT_EQ(pools.value()->pds.limit(), 100u);
	EXPECT_EQ(pools.value()->keys.limit(), 200u);
	EXPECT_EQ(pools.value()->cqs.limit(), 300u);
	EXPECT_EQ(pools.value()->srqs.limit(), 400u);
	EXPECT_EQ(pools.value()->qps.limit(), 500u);
}

/* However many users there are, a sixteenth is left for root and the kernel. */
void reserved_objects_are_available_only_to_root_and_the_kernel(kern::kunit::Test &test)
{
	constexpr u32 users = 100, limit = 160, reserve = limit / 16;
	const auto pools = kern::make<Pools>(kern::Gfp::kernel, attr_of(limit));
	ASSERT_OK(pools);
	kern::Shares<Share> shares{KERN_LOCK_CLASS("uverbs.shares_test")};
	auto charges = kern::make_array<kern::Charge>(kern::Gfp::kernel, limit);
	ASSERT_OK(charges);
	u32 taken = 0;
	for (u32 i = 0; i < users; i++) {
		auto member = shares.enter(nth_user(i), *pools.value());
		ASSERT_OK(member);
		while (true) {
			auto charge = member.value()->qps.take();
			if (!charge)
				break;
			ASSERT_LT(taken, limit);
			charges.value()[taken++] = charge.take();
		}
	}
	EXPECT_EQ(taken, limit - reserve);
	auto member = shares.enter(root, *pools.value());
	ASSERT_OK(member);
	EXPECT_OK(member.value()->qps.take(reserve));
	charges.value() = {};
}

/*
 * The members of a group are shared in the same way, whatever the users have elsewhere. In a group
 * with only two members, two users get one each.
 */
void user_can_attach_at_most_half_of_the_qps_that_a_multicast_group_can_hold(
	kern::kunit::Test &test)
{
	constexpr u32 group_size = 120, half = 57, reserve = 7;
	const ib_gid group = {.raw = {0xff, 0x12, 1}}, elsewhere = {.raw = {0xff, 0x12, 2}};
	const auto pools = kern::make<Pools>(kern::Gfp::kernel, ib_device_attr{});
	const auto members = kern::make<GroupMembers>(kern::Gfp::kernel);
	auto list = kern::make_array<GroupMembers::Member>(kern::Gfp::kernel, group_size);
	auto first = kern::make<GroupMembers::Member>(kern::Gfp::kernel);

	ASSERT_OK(pools);
	ASSERT_OK(members);
	ASSERT_OK(list);
	ASSERT_OK(first);
	Share share(somebody, *pools.value()), privileged(root, *pools.value());
	const auto join = [&](const Share &user, GroupMembers::Member &member) {
		return members.value()->join(member, user, group, group_size);
	};
	u32 taken = 0;
	EXPECT_OK(join(share, *first.value()));
	while (join(share, list.value()[taken]))
		taken++;
	EXPECT_EQ(taken + 1, half);
	first.value() = {};
	EXPECT_OK(join(share, list.value()[taken++]));
	const auto others = kern::make_array<kern::Owned<Share>>(kern::Gfp::kernel, 20);
	ASSERT_OK(others);
	u32 number = 0;
	for (kern::Owned<Share> &other : others.value()) {
		auto made =
			kern::make<Share>(kern::Gfp::kernel, nth_user(number++), *pools.value());
		ASSERT_OK(made);
		other = made.take();
		while (join(*other, list.value()[taken]))
			taken++;
	}
	EXPECT_EQ(taken, group_size - reserve);
	EXPECT_OK(join(privileged, list.value()[taken]));

	const Share &other = *others.value()[0];
	GroupMembers::Member one, two;
	EXPECT_OK(members.value()->join(one, share, elsewhere, 2));
	EXPECT_ERROR(members.value()->join(two, share, elsewhere, 2), -EDQUOT);
	EXPECT_OK(members.value()->join(two, other, elsewhere, 2));
}

/*
 * All files of a user share a quota, except privileged ones. The quota exists as long as something
 * that counts against it is lost.
 */
void uverbs_files_of_one_user_share_an_object_quota(kern::kunit::Test &test)
{
	const auto made = kern::make<Shares>(kern::Gfp::kernel, ib_device_attr{});
	ASSERT_OK(made);
	Shares &shares = *made.value();
	constexpr kern_user unprivileged_root = {.id = 0, .privileged = false};
	kern::Charge lost;
	{
		const auto first = shares.enter(somebody), second = shares.enter(somebody),
			   other = shares.enter(root), contained = shares.enter(unprivileged_root);
		ASSERT_OK(first);
		ASSERT_OK(second);
		ASSERT_OK(other);
		ASSERT_OK(contained);
		EXPECT_EQ(&*first.value(), &*second.value());
		EXPECT_NE(&*first.value(), &*other.value());
		EXPECT_NE(&*contained.value(), &*other.value());
		EXPECT_EQ(other.value()->user.id, root.id);
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

KUNIT_SUITE(
	uverbs_shares, KUNIT_CASE(user_can_allocate_at_most_half_of_the_pds),
	KUNIT_CASE(user_can_allocate_at_most_half_of_the_address_handles),
	KUNIT_CASE(user_can_allocate_at_most_half_of_the_memory_keys),
	KUNIT_CASE(user_can_allocate_at_most_half_of_the_cqs_half_of_the_srqs_and_half_of_the_qps),
	KUNIT_CASE(object_limits_come_from_the_device_attributes),
	KUNIT_CASE(reserved_objects_are_available_only_to_root_and_the_kernel),
	KUNIT_CASE(user_can_attach_at_most_half_of_the_qps_that_a_multicast_group_can_hold),
	KUNIT_CASE(uverbs_files_of_one_user_share_an_object_quota));
