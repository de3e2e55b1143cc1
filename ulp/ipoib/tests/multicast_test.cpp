// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests multicast groups of an interface: the limit for programs, the cost of each group, and
// whether the kernel or a program is charged for it.
#include "fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace ipoib
{
struct MulticastOf {
	static Multicast &of(const Host &host) { return host.interface().multicast_; }
};
} // namespace ipoib

namespace
{

/* The number of groups that programs make the stack listen to. */
constexpr u32 many = 20'000;

HardwareAddress group_of(const Host &host, u32 number)
{
	HardwareAddress address = host.interface().broadcast();
	/* The stack itself uses no group with this byte. */
	address.gid.raw[11] = 0x5a;
	address.gid.raw[13] = static_cast<u8>(number >> 16);
	address.gid.raw[14] = static_cast<u8>(number >> 8);
	address.gid.raw[15] = static_cast<u8>(number);
	return address;
}

int listen(const Host &host, const HardwareAddress &address, bool on)
{
	return kern_kunit_netdev_listen(host.dev(), &address, on);
}

bool is_joined(const Host &host, const HardwareAddress &address)
{
	ib_gid mgid;
	ib_sa_mcmember_rec record;
	__builtin_memcpy(mgid.raw, address.gid.raw, sizeof(mgid.raw));
	return ib_sa_get_mcmember_rec(host.device(), 1, &mgid, &record) == 0;
}

/*
 * A user makes the stack listen to 20,000 groups. The first ones, up to the bound, are joined. Each
 * group is visited a few times, by lookups that compare a few groups, and all are left.
 */
void ipoib_11_work_per_multicast_group_does_not_grow_with_the_number_of_groups(Test &test)
{
	constexpr u64 looks_at_each = 4;
	/* The bound for 8,192 entries in 512 buckets, which no value of the secret comes near. */
	constexpr std::size_t longest = 80;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	Multicast &multicast = MulticastOf::of(pair.a);
	const std::size_t own = multicast.groups();
	const u64 served = multicast.served();
	for (u32 i = 0; i < many; i++)
		ASSERT_EQ(listen(pair.a, group_of(pair.a, i), true), 0);
	constexpr u32 all = Multicast::listened_max;
	static_assert(all < many);
	/* The stack's own groups come first. It may have joined, or sent to, a few more by now. */
	constexpr u32 few = 32;
	EXPECT_TRUE(eventually([&] {
		return is_joined(pair.a, group_of(pair.a, all - static_cast<u32>(own) - few));
	}));
	EXPECT_TRUE(eventually(
		[&] { return multicast.groups() > all && multicast.groups() <= all + few; }));
	EXPECT_TRUE(is_joined(pair.a, group_of(pair.a, 0)));
	EXPECT_FALSE(is_joined(pair.a, group_of(pair.a, many - 1)));
	EXPECT_LE(multicast.longest(), longest);
	EXPECT_LE(multicast.served() - served, looks_at_each * all);
	/* The interface still works. */
	EXPECT_TRUE(pair.a.reaches(pair.b));

	for (u32 i = many; i-- > 0;)
		ASSERT_EQ(listen(pair.a, group_of(pair.a, i), false), 0);
	EXPECT_TRUE(eventually([&] { return multicast.groups() <= own + few; }));
	EXPECT_TRUE(eventually([&] { return !is_joined(pair.a, group_of(pair.a, 0)); }));
	EXPECT_LE(multicast.served() - served, 2 * looks_at_each * all);
}

/* Joins that failed are retried, each after its own delay, while other joins proceed. */
void ipoib_11_multicast_joins_rejected_by_the_sa_are_retried(Test &test)
{
	constexpr u32 count = 100;
	constexpr u16 refusal = 0x0200; /* ERR_NO_RESOURCES would do as well */
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	pair.administrator.refuse.store_release(refusal);
	const unsigned joins = pair.administrator.joins.load_relaxed();
	for (u32 i = 0; i < count; i++)
		ASSERT_EQ(listen(pair.a, group_of(pair.a, i), true), 0);
	ASSERT_TRUE(eventually(
		[&] { return pair.administrator.joins.load_relaxed() >= joins + count; }));
	pair.administrator.refuse.store_release(0);
	for (u32 i = 0; i < count; i++)
		EXPECT_TRUE(eventually([&] { return is_joined(pair.a, group_of(pair.a, i)); }));
	/* A join that is cancelled while it waits is not retried. */
	pair.administrator.refuse.store_release(refusal);
	const HardwareAddress last = group_of(pair.a, count);
	const unsigned before = pair.administrator.joins.load_relaxed();
	ASSERT_EQ(listen(pair.a, last, true), 0);
	ASSERT_TRUE(eventually([&] { return pair.administrator.joins.load_relaxed() > before; }));
	const std::size_t groups = MulticastOf::of(pair.a).groups();
	ASSERT_EQ(listen(pair.a, last, false), 0);
	EXPECT_TRUE(eventually([&] { return MulticastOf::of(pair.a).groups() < groups; }));
	pair.administrator.refuse.store_release(0);
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

/* Records the owners for which the device's QPs are attached to groups. */
struct Owners {
	explicit Owners(ib_device *device) : ops(device->ops)
	{
		now = this;
		original = std::exchange(ops.attach_mcast, record);
	}
	~Owners()
	{
		ops.attach_mcast = original;
		now = nullptr;
	}
	Owners(const Owners &) = delete;
	Owners &operator=(const Owners &) = delete;

	static int record(ib_qp *qp, const ib_gid *gid, u16 lid, ib_mcast_owner owner)
	{
		HardwareAddress address{};
		__builtin_memcpy(address.gid.raw, gid->raw, sizeof(gid->raw));
		const bool is_needed =
			__builtin_memcmp(gid->raw, now->broadcast.raw, sizeof(gid->raw)) == 0 ||
			is_all_hosts(address);
		if (is_needed)
			(owner == IB_MCAST_KERNEL ? now->needed : now->wrong).fetch_add(1);
		else
			(owner == IB_MCAST_USER ? now->others : now->wrong).fetch_add(1);
		return now->original(qp, gid, lid, owner);
	}

	static inline constinit Owners *now = nullptr;
	ib_device_ops &ops;
	decltype(ib_device_ops::attach_mcast) original;
	ib::Gid broadcast{};
	kern::Atomic<unsigned> needed{}, others{}, wrong{};
};

/*
 * Groups that programs make the stack listen to are charged to programs, so that they cannot use up
 * the part of a device's table that is reserved for the kernel. The broadcast group and the
 * all-hosts group are the kernel's.
 */
void ipoib_11_multicast_joins_of_user_space_use_no_device_resources_reserved_for_the_kernel(
	Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Owners owners(pair.a.device());
	owners.broadcast = pair.a.interface().broadcast().gid;
	ASSERT_TRUE(pair.begin());
	EXPECT_TRUE(eventually([&] { return owners.needed.load_acquire() > 0; }));
	HardwareAddress all_hosts = pair.a.interface().broadcast();
	__builtin_memset(all_hosts.gid.raw + 6, 0, 9);
	all_hosts.gid.raw[15] = 1;
	const unsigned needed = owners.needed.load_acquire();
	ASSERT_EQ(listen(pair.a, all_hosts, true), 0);
	EXPECT_TRUE(eventually([&] { return is_joined(pair.a, all_hosts); }));
	EXPECT_TRUE(eventually([&] { return owners.needed.load_acquire() >= needed; }));
	const unsigned others = owners.others.load_acquire();
	ASSERT_EQ(listen(pair.a, group_of(pair.a, 1), true), 0);
	EXPECT_TRUE(eventually([&] { return owners.others.load_acquire() > others; }));
	EXPECT_EQ(owners.wrong.load_acquire(), 0u);
	pair.a.down();
}

} // namespace

CARD_SUITE(
	ipoib_multicast,
	KUNIT_CASE(ipoib_11_work_per_multicast_group_does_not_grow_with_the_number_of_groups),
	KUNIT_CASE(ipoib_11_multicast_joins_rejected_by_the_sa_are_retried),
	KUNIT_CASE(
		ipoib_11_multicast_joins_of_user_space_use_no_device_resources_reserved_for_the_kernel));
