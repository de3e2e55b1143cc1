// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Destinations under the explorer: one goes while all are marked, or looked up. Of the first
// bucket, so that few decisions lead there.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/thread.hpp>
#include "../../destination.hpp"

using namespace ipoib;
using kern::kunit::Test;

namespace
{

/* Without a secret the GID 0 is in bucket 0. */
constexpr DestinationTable::Secret no_secret{};
HardwareAddress first_bucket()
{
	return HardwareAddress::make(5, {});
}

/* A table with one destination, which nobody could resolve, and a task that takes it out. */
class Removal
{
public:
	~Removal()
	{
		if (thread_)
			removed_.wait();
	}

	bool ok()
	{
		/* A packet of core/kern/hosted/packet.cpp. */
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
		auto made = kern::Thread::create("removal", kern::method<&Removal::remove>, this);
		if (!made.ok())
			return false;
		thread_ = made.take();
		return true;
	}

	DestinationTable table{no_secret};

private:
	int remove()
	{
		table.remove(first_bucket());
		removed_.complete();
		return 0;
	}

	kern::Completion removed_;
	kern::Thread thread_;
};

/*
 * Nothing of one that is freed meanwhile is read: whoever walks a bucket without being a reader
 * begins under the lock.
 */
void marked_while_one_goes(Test &test)
{
	auto removal = kern::make<Removal>(kern::Gfp::kernel);
	ASSERT_TRUE(removal.ok());
	auto owned = removal.take();
	ASSERT_TRUE(owned->ok());
	owned->table.mark_stale();
}

/* Who looks it up has it until the end of the section, or until the reference is given back. */
void found_while_it_goes(Test &test)
{
	auto removal = kern::make<Removal>(kern::Gfp::kernel);
	ASSERT_TRUE(removal.ok());
	auto owned = removal.take();
	ASSERT_TRUE(owned->ok());
	{
		kern::rcu::ReadGuard reading;
		if (Destination *found = owned->table.find(first_bucket()))
			EXPECT_EQ(found->qpn(), 5u);
	}
	if (auto kept = owned->table.get(first_bucket()))
		EXPECT_EQ(kept->qpn(), 5u);
}

} // namespace

KUNIT_SUITE(explore_destinations, KUNIT_CASE(marked_while_one_goes),
	    KUNIT_CASE(found_while_it_goes));
