// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests under many thread interleavings (weft-explore(1)) for races between the removal of one
// destination and code that marks all destinations as stale or looks one up. All destinations are
// in the first bucket, so that few scheduling decisions lead to a race.
#include <kern/kunit.hpp>
#include <kern/kunit_fixture.hpp>
#include <kern/memory.hpp>
#include "../../destination.hpp"

using namespace ipoib;
using kern::kunit::ConcurrentThread;
using kern::kunit::Boxed;
using kern::kunit::Test;

namespace
{

/* Without a secret the GID 0 is in bucket 0. */
constexpr DestinationTable::Secret no_secret{};
HardwareAddress first_bucket()
{
	return HardwareAddress::make(5, {});
}

/* A table with one destination whose resolution failed. */
struct OneDestination {
	bool ok()
	{
		/* A packet of core/kern/sim/packet.cpp. */
		auto *packet =
			static_cast<sk_buff *>(kern_alloc(64, KERN_GFP_KERNEL | KERN_GFP_ZERO));
		if (!packet)
			return false;
		kern::Ref<Destination> destination;
		if (table.wait(first_bucket(), packet, destination) !=
		    DestinationTable::Action::resolve)
			return false;
		kern_skb_queue waiting = table.resolved(*destination, {});
		while (sk_buff *skb = kern_skb_dequeue(&waiting))
			kern_skb_drop(skb);
		return true;
	}

	DestinationTable table{no_secret};
};

/*
 * A destination that is freed in the meantime is not read: code that walks a bucket outside an RCU
 * read-side critical section takes the lock first.
 */
void marking_destinations_as_stale_does_not_read_a_concurrently_freed_destination(Test &test)
{
	Boxed<OneDestination> one;
	ASSERT_TRUE(one.ok());
	ConcurrentThread removal([&] { one->table.remove(first_bucket()); });
	ASSERT_TRUE(removal.ok());
	one->table.mark_stale();
}

/* A lookup's result is valid until the end of the section, or until its reference is dropped. */
void looked_up_destination_stays_valid_after_its_removal(Test &test)
{
	Boxed<OneDestination> one;
	ASSERT_TRUE(one.ok());
	ConcurrentThread removal([&] { one->table.remove(first_bucket()); });
	ASSERT_TRUE(removal.ok());
	{
		kern::rcu::ReadGuard reading;
		if (Destination *found = one->table.find(first_bucket()))
			EXPECT_EQ(found->qpn(), 5u);
	}
	if (auto kept = one->table.get(first_bucket()))
		EXPECT_EQ(kept->qpn(), 5u);
}

} // namespace

KUNIT_SUITE(
	explore_destinations,
	KUNIT_CASE(marking_destinations_as_stale_does_not_read_a_concurrently_freed_destination),
	KUNIT_CASE(looked_up_destination_stays_valid_after_its_removal));
