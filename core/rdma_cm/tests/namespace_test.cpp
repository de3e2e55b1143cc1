// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that an ID uses only the addresses and ports of its creator's namespace.
#include <kern/abi/net.h>
#include <rdma/ib_namespaces.h>
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::State;

namespace
{

/*
 * Hosts 1 and 2 are in the initial namespace, and host 3, on the port of host 2, in a second one.
 */
struct Namespaces : Pair {
	static constexpr u64 second = 1;

	bool ok()
	{
		if (!stand())
			return false;
		ground.addresses.add(b, 3, IB_DEFAULT_PKEY_FULL, second);
		return true;
	}
	/* An id of a process in that namespace. */
	bool open(End &end, u64 net)
	{
		ground.addresses.caller_net = net;
		return end.open(RDMA_PS_TCP, IB_QPT_RC, true);
	}
	bool listen_at(End &end, u64 net, const Address &at)
	{
		return open(end, net) && rdma_bind_addr(end.id, &at) == 0 &&
		       rdma_listen(end.id, 1) == 0;
	}
	/* True if a request from host 1 reaches the end to which `taker` passes its new ids. */
	bool reaches(End &asking, u8 host, End &taker, End &fresh)
	{
		taker.fresh = &fresh;
		asking.close();
		return asking.open() && asking.resolve(ipv4(host, port)) && asking.connect() == 0 &&
		       fresh.receives(RDMA_CM_EVENT_CONNECT_REQUEST);
	}
};

Address any_with(u16 port)
{
	Address any = rdma_cm::any_of(RDMA_AF_INET);
	any.in.port = port;
	return any;
}

void rcm_17_id_uses_addresses_of_its_namespace(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Boxed<Ends<1>> one;
	ASSERT_TRUE(one.there());
	End &end = one->ends[0];
	const Address to = ipv4(1, Pair::port);
	for (u64 net : {u64{0}, Namespaces::second}) {
		for (u8 host : {1, 2, 3}) {
			const bool own = (host == 3) == (net == Namespaces::second);
			const Address at = ipv4(host);
			ASSERT_TRUE(there->open(end, net));
			EXPECT_EQ(rdma_bind_addr(end.id, &at), own ? 0 : -EADDRNOTAVAIL);
			end.close();
			ASSERT_TRUE(there->open(end, net));
			EXPECT_EQ(rdma_resolve_addr(end.id, &at, &to, 2000),
				  own ? 0 : -EADDRNOTAVAIL);
			end.close();
		}
	}
	/* Without a source it leaves by an interface of the namespace. */
	ASSERT_TRUE(there->open(end, Namespaces::second) && end.resolve(to));
	EXPECT_TRUE(rdma_cm::same_host(end.id->route.addr.src_addr, ipv4(3)));
	/*
	 * IDs of kernel consumers are in the initial namespace, in whatever namespace they are
	 * created.
	 */
	end.close();
	const Address at = ipv4(3);
	ASSERT_TRUE(end.open());
	EXPECT_EQ(rdma_bind_addr(end.id, &at), -EADDRNOTAVAIL);
}

void rcm_17_port_numbers_are_allocated_separately_in_each_namespace(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Addresses &addresses = there->ground.addresses;
	addresses.first_port = 5000;
	addresses.last_port = 5015;
	const Address any = any_with(0), named = any_with(5003);
	Boxed<Ends<15>> first, second;
	Boxed<Ends<1>> more;
	ASSERT_TRUE(first.there() && second.there() && more.there());
	End &other = more->ends[0];
	for (auto [ends, net] :
	     {std::pair{&*first, u64{0}}, std::pair{&*second, u64{Namespaces::second}}}) {
		for (End &end : ends->ends) {
			ASSERT_TRUE(there->open(end, net));
			ASSERT_EQ(rdma_bind_addr(end.id, &any), 0);
		}
		ASSERT_TRUE(there->open(other, net));
		EXPECT_EQ(rdma_bind_addr(other.id, &any), -EADDRNOTAVAIL);
		EXPECT_EQ(rdma_bind_addr(other.id, &named), -EADDRNOTAVAIL);
		other.close();
	}
	/* A port that has been released is free only in the namespace of its ID. */
	first->ends[0].close();
	ASSERT_TRUE(there->open(other, Namespaces::second));
	EXPECT_EQ(rdma_bind_addr(other.id, &any), -EADDRNOTAVAIL);
	other.close();
	ASSERT_TRUE(there->open(other, 0));
	EXPECT_EQ(rdma_bind_addr(other.id, &any), 0);
}

/* A port number that programs share counts until the last ID has released it. */
void rcm_17_port_shared_by_reuseaddr_ids_counts_once_towards_the_namespace_port_limit(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Addresses &addresses = there->ground.addresses;
	addresses.first_port = 5000;
	addresses.last_port = 5000;
	const Address named = any_with(5000);
	Boxed<Ends<3>> three;
	ASSERT_TRUE(three.there());
	for (End &end : three->ends) {
		ASSERT_TRUE(there->open(end, 0));
		ASSERT_EQ(rdma_set_reuseaddr(end.id, 1), 0);
		ASSERT_EQ(rdma_bind_addr(end.id, &named), 0);
	}
	const auto counted = [&] {
		unsigned int sum = 0;
		for (const End &end : three->ends)
			sum += end.id && rdma_cm::Id::of(end.id).counts_port;
		return sum;
	};
	EXPECT_EQ(counted(), 1u);
	three->ends[0].close();
	EXPECT_EQ(counted(), 1u);
	three->ends[1].close();
	EXPECT_EQ(counted(), 1u);
	EXPECT_EQ(rdma_cm::Id::of(three->ends[2].id).net().ports_of_programs[0], 1u);
}

void rcm_17_requests_reach_listeners_of_their_namespace(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Boxed<Ends<5>> five;
	ASSERT_TRUE(five.there());
	auto &[first, second, taken, asking, again] = five->ends;
	const Address any = any_with(Pair::port);
	ASSERT_TRUE(there->listen_at(first, 0, any));
	ASSERT_TRUE(there->listen_at(second, Namespaces::second, any));
	/* Two of one namespace share none. */
	ASSERT_TRUE(there->open(again, Namespaces::second));
	EXPECT_EQ(rdma_bind_addr(again.id, &any), -EADDRNOTAVAIL);

	ASSERT_TRUE(there->reaches(asking, 2, first, taken));
	EXPECT_EQ(rdma_cm::Id::of(taken.id).net().number, 0u);
	taken.close();
	ASSERT_TRUE(there->reaches(asking, 3, second, taken));
	EXPECT_EQ(rdma_cm::Id::of(taken.id).net().number, Namespaces::second);
	taken.close();

	/* Without a listener in its namespace a request is refused. */
	second.close();
	asking.close();
	ASSERT_TRUE(asking.open() && asking.resolve(ipv4(3, Pair::port)) && asking.connect() == 0);
	EXPECT_TRUE(asking.receives(RDMA_CM_EVENT_REJECTED));
	EXPECT_EQ(first.all(), 0u);
	/* The device continues to listen for the other namespace. */
	ASSERT_TRUE(there->reaches(asking, 2, first, taken));
}

/*
 * If devices are not shared, an ID uses only those of its own namespace, wherever the interfaces
 * are.
 */
void rcm_17_id_uses_no_device_of_another_namespace(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	ASSERT_EQ(ib_share_devices(false), 0);
	ib_device *const moved = there->b.device();
	EXPECT_EQ(ib_move_device(moved, KERN_NET_INITIAL, Namespaces::second), 0);
	{
		Boxed<Ends<4>> four;
		ASSERT_TRUE(four.there());
		auto &[first, second, taken, asking] = four->ends;
		const Address two = ipv4(2), three = ipv4(3), any = any_with(Pair::port);
		ASSERT_TRUE(there->open(first, 0));
		EXPECT_EQ(rdma_bind_addr(first.id, &two), -ENODEV);
		first.close();
		ASSERT_TRUE(there->open(second, Namespaces::second));
		EXPECT_EQ(rdma_bind_addr(second.id, &three), 0);
		second.close();

		ASSERT_TRUE(there->listen_at(first, 0, any));
		ASSERT_TRUE(there->listen_at(second, Namespaces::second, any));
		ASSERT_TRUE(there->reaches(asking, 3, second, taken));
		taken.close();
		asking.close();
		ASSERT_TRUE(asking.open() && asking.resolve(ipv4(2, Pair::port)) &&
			    asking.connect() == 0);
		EXPECT_TRUE(asking.receives(RDMA_CM_EVENT_REJECTED));
		EXPECT_EQ(first.all(), 0u);
	}
	EXPECT_EQ(ib_move_device(moved, Namespaces::second, KERN_NET_INITIAL), 0);
	EXPECT_EQ(ib_share_devices(true), 0);
}

/* Neighbour updates in one namespace do not wake ids of another. */
void rcm_17_neighbour_updates_wake_only_ids_of_their_namespace(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Addresses &addresses = there->ground.addresses;
	Boxed<Ends<1>> one;
	ASSERT_TRUE(one.there());
	End &end = one->ends[0];
	const Address to = ipv4(1, Pair::port);
	addresses.answering.store_release(false);
	ASSERT_TRUE(there->open(end, Namespaces::second));
	ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 60'000), 0);
	/* The first lookup is made in the call, the second immediately afterwards. */
	ASSERT_TRUE(eventually([&] { return addresses.asked.load_acquire() == 2; }));
	addresses.answering.store_release(true);
	rdma_cm::retry_resolutions(0);
	rdma_cm::retry_resolutions(77);
	rdma_cm::Manager::get().queue().flush();
	EXPECT_EQ(addresses.asked.load_acquire(), 2u);
	rdma_cm::retry_resolutions(Namespaces::second);
	EXPECT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
}

/* A namespace is held while it has an ID, and only once for all of its IDs. */
void rcm_17_namespace_is_referenced_while_it_has_ids(Test &test)
{
	Boxed<Namespaces> there;
	ASSERT_TRUE(there.there() && there->ok());
	Addresses &addresses = there->ground.addresses;
	Boxed<Ends<2>> two;
	ASSERT_TRUE(two.there());
	auto &[end, other] = two->ends;
	const int before = addresses.entered.load_acquire();
	ASSERT_TRUE(there->open(end, Namespaces::second) && there->open(other, Namespaces::second));
	EXPECT_TRUE(&rdma_cm::Id::of(end.id).net() == &rdma_cm::Id::of(other.id).net());
	EXPECT_EQ(addresses.entered.load_acquire(), before + 1);
	end.close();
	EXPECT_EQ(addresses.entered.load_acquire(), before + 1);
	other.close();
	EXPECT_EQ(addresses.entered.load_acquire(), before);
}

} // namespace

SOFT_SUITES(
	rdma_cm_namespaces, KUNIT_CASE(rcm_17_id_uses_addresses_of_its_namespace),
	KUNIT_CASE(rcm_17_port_numbers_are_allocated_separately_in_each_namespace),
	KUNIT_CASE(
		rcm_17_port_shared_by_reuseaddr_ids_counts_once_towards_the_namespace_port_limit),
	KUNIT_CASE(rcm_17_requests_reach_listeners_of_their_namespace),
	KUNIT_CASE(rcm_17_id_uses_no_device_of_another_namespace),
	KUNIT_CASE(rcm_17_neighbour_updates_wake_only_ids_of_their_namespace),
	KUNIT_CASE(rcm_17_namespace_is_referenced_while_it_has_ids));
