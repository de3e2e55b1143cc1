// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the destination table stays bounded and usable when malicious peers choose the
// addresses in it.
#include "connected_fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

HardwareAddress address_of(u32 qpn, u64 prefix, u64 interface_id)
{
	ib::Gid gid{};
	__builtin_memcpy(gid.raw, &prefix, sizeof(prefix));
	__builtin_memcpy(gid.raw + 8, &interface_id, sizeof(interface_id));
	return HardwareAddress::make(qpn, gid);
}

/* A table without an interface. Requests to resolve an address succeed or fail at once. */
class Bench
{
public:
	Bench()
	{
		auto made = kern::make<DestinationTable>(kern::Gfp::kernel);
		auto packet = kern::make_array<u8>(kern::Gfp::kernel, 1024);
		pd_ = ib_alloc_pd(device_, 0);
		if (!made.ok() || !packet.ok())
			return;
		table_ = made.take();
		packet_ = packet.take();
	}
	~Bench()
	{
		table_.reset();
		if (!rdma::is_err(pd_))
			ib_dealloc_pd(pd_);
	}
	Bench(const Bench &) = delete;
	Bench &operator=(const Bench &) = delete;

	bool ok() const { return table_ && !packet_.empty() && !rdma::is_err(pd_); }
	/* Returns the number of address handles, because the PD has no other objects. */
	int handles() const { return pd_->usecnt; }
	DestinationTable &table() { return *table_; }

	/* Sends a packet to an unresolved address. */
	DestinationTable::Action send(const HardwareAddress &to) { return send(to, {}); }
	/* Sends a packet and resolves the address. */
	DestinationTable::Action send_and_find(const HardwareAddress &to)
	{
		return send(to, handle());
	}
	kern::Owned<Handle> handle() const
	{
		rdma_ah_attr where{};
		where.type = RDMA_AH_ATTR_TYPE_IB;
		where.port_num = 1;
		rdma_ah_set_dlid(&where, 77);
		return Handle::create(pd_, where);
	}

private:
	DestinationTable::Action send(const HardwareAddress &to, kern::Owned<Handle> handle)
	{
		/* The table uses only the packet's list pointer. */
		auto *const packet = reinterpret_cast<sk_buff *>(packet_.data());
		kern::Ref<Destination> destination;
		const auto action = table_->wait(to, packet, destination);
		if (action == DestinationTable::Action::resolve) {
			kern_skb_queue waited = table_->resolved(*destination, std::move(handle));
			(void)kern_skb_dequeue(&waited);
		}
		return action;
	}

	::fixture::Device device_;
	kern::Owned<DestinationTable> table_;
	kern::OwnedArray<u8> packet_;
	ib_pd *pd_ = nullptr;
};

using Action = DestinationTable::Action;

/*
 * Addresses whose differences cancel out between their parts, or that differ in one part only: a
 * peer cannot choose their hash buckets.
 */
void ipoib_08_hash_chains_of_addresses_chosen_by_peers_have_at_most_32_entries(Test &test)
{
	constexpr u32 count = 4096;
	/*
	 * The average is four per bucket; the probability that some bucket has 32 is about 1:10^15.
	 */
	constexpr u32 most = 32;
	constexpr u64 victim = 0x0002c903'00a1b2c3;
	Bench cancelling, prefixes, ids;
	ASSERT_TRUE(cancelling.ok() && prefixes.ok() && ids.ok());
	for (u32 i = 1; i <= count; i++) {
		ASSERT_EQ(cancelling.send(address_of(i, 0xfe80, victim ^ i)), Action::resolve);
		ASSERT_EQ(prefixes.send(address_of(5, u64{i} << 40, victim)), Action::resolve);
		ASSERT_EQ(ids.send(address_of(5, 0xfe80, victim ^ u64{i} << 40)), Action::resolve);
	}
	EXPECT_LE(cancelling.table().longest(), most);
	EXPECT_LE(prefixes.table().longest(), most);
	EXPECT_LE(ids.table().longest(), most);
}

/* A peer with many QP numbers, real or not, cannot exceed its share; others still get entries. */
void ipoib_08_number_of_destinations_with_the_same_gid_is_limited(Test &test)
{
	constexpr u32 share = DestinationTable::capacity / DestinationTable::share;
	Bench bench;
	ASSERT_TRUE(bench.ok());
	u32 found = 0;
	for (u32 qpn = 1; qpn <= 2 * share; qpn++)
		found += bench.send_and_find(address_of(qpn, 0xfe80, 5)) == Action::resolve;
	EXPECT_LE(found, share);
	EXPECT_GE(found, share - share / DestinationTable::share);
	EXPECT_EQ(bench.send_and_find(address_of(1, 0xfe80, 6)), Action::resolve);
	/* The peer's existing entries are unchanged. */
	EXPECT_EQ(bench.send(address_of(1, 0xfe80, 5)), Action::send);
}

/* A flood of senders that do not exist blocks no other peer, and evicts no entry that is in use. */
void ipoib_08_unresolvable_destinations_are_evicted(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	const HardwareAddress used = address_of(1, 0xfe80, 5);
	ASSERT_EQ(bench.send_and_find(used), Action::resolve);
	for (u32 i = 0; i < DestinationTable::capacity; i++)
		ASSERT_EQ(bench.send(address_of(1, 0xfe81, i)), Action::resolve);
	EXPECT_EQ(bench.send_and_find(address_of(1, 0xfe80, 6)), Action::resolve);
	EXPECT_EQ(bench.send_and_find(address_of(2, 0xfe80, 5)), Action::resolve);
	EXPECT_EQ(bench.send(used), Action::send);
	/* The oldest entries were evicted in favour of the newest. */
	EXPECT_FALSE(static_cast<bool>(bench.table().get(address_of(1, 0xfe81, 0))));
	EXPECT_TRUE(static_cast<bool>(
		bench.table().get(address_of(1, 0xfe81, DestinationTable::capacity - 1))));
}

/*
 * Packets that wait for address resolution are bounded in total. The address is resolved
 * nevertheless.
 */
void ipoib_08_number_of_packets_waiting_for_a_path_is_limited(Test &test)
{
	constexpr u32 each = DestinationTable::waiting_max,
		      peers = DestinationTable::waiting_of_all_max / each;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	HardwareAddress address;
	__builtin_memcpy(&address, pair.b.address(), sizeof(address));
	const u64 dropped = pair.a.counter("tx_unresolved_dropped"),
		  queries = pair.a.counter("path_queries");
	soft_hold_datagrams(pair.a.device(), true);
	for (u32 peer = 0; peer <= peers; peer++) {
		address.gid.raw[15] = static_cast<u8>(100 + peer);
		for (u32 i = 0; i < each; i++)
			EXPECT_EQ(kern_kunit_netdev_send(pair.a.dev(), &address, type_ipv4, 100),
				  0);
	}
	EXPECT_EQ(pair.a.counter("tx_unresolved_dropped"), dropped + each);
	EXPECT_EQ(pair.a.counter("path_queries"), queries + peers + 1);
	soft_hold_datagrams(pair.a.device(), false);
	EXPECT_TRUE(pair.a.reaches(pair.b));
}

/*
 * When an address is resolved again, the former handle is destroyed after its RCU readers have
 * finished, and the callback of the query does not wait for them.
 */
void ipoib_08_path_query_callback_does_not_wait_for_rcu_readers(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	const HardwareAddress peer = address_of(1, 0xfe80, 5);
	ASSERT_EQ(bench.send_and_find(peer), Action::resolve);
	ASSERT_EQ(bench.handles(), 1);
	{
		kern::rcu::ReadGuard reading;
		Destination *const found = bench.table().find(peer);
		ASSERT_TRUE(found != nullptr);
		ib_ah *const former = found->ah();
		(void)bench.table().resolved(*found, bench.handle());
		EXPECT_TRUE(found->ah() != former);
		bench.table().destroy_retired(0);
		EXPECT_EQ(bench.handles(), 2);
	}
	kern::rcu::barrier();
	bench.table().destroy_retired(0);
	EXPECT_EQ(bench.handles(), 1);
}

/*
 * A sender on a path that may have changed causes a new query, at most once a second; in between,
 * no packet takes the slow path for it. A group is joined, and never queried.
 */
void ipoib_03_path_of_a_destination_is_queried_at_most_once_per_second(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	DestinationTable &table = bench.table();
	const HardwareAddress peer = address_of(1, 0xfe80, 5),
			      group = address_of(0xffffff, 0xff, 6);
	ASSERT_EQ(bench.send_and_find(peer), Action::resolve);
	ASSERT_EQ(bench.send_and_find(group), Action::resolve);
	kern::Ref<Destination> held;
	{
		kern::rcu::ReadGuard reading;
		held = kern::Ref<Destination>::share(*table.find(peer));
		table.mark_stale();
		EXPECT_FALSE(DestinationTable::is_stale(*table.find(group)));
	}
	for (unsigned round = 0; round < 2; round++) {
		EXPECT_TRUE(DestinationTable::is_stale(*held));
		ASSERT_TRUE(table.begin_refresh(*held));
		(void)table.resolved(*held, bench.handle());
		table.mark_stale();
		EXPECT_FALSE(DestinationTable::is_stale(*held));
		EXPECT_FALSE(table.begin_refresh(*held));
		kern::sleep_us(1'100'000, 1'200'000);
	}
	held.reset();
	kern::rcu::barrier();
	table.destroy_retired(0);
}

} // namespace

CARD_SUITE(ipoib_destinations,
	   KUNIT_CASE(ipoib_08_hash_chains_of_addresses_chosen_by_peers_have_at_most_32_entries),
	   KUNIT_CASE(ipoib_08_number_of_destinations_with_the_same_gid_is_limited),
	   KUNIT_CASE(ipoib_08_unresolvable_destinations_are_evicted),
	   KUNIT_CASE(ipoib_08_number_of_packets_waiting_for_a_path_is_limited),
	   KUNIT_CASE(ipoib_08_path_query_callback_does_not_wait_for_rcu_readers),
	   KUNIT_CASE(ipoib_03_path_of_a_destination_is_queried_at_most_once_per_second));
