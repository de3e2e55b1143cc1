// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests IPoIB interfaces on the emulated ConnectX in one process (weft-explore(1)): the driver, the
// card, a subnet manager with its SA, the management agents and IPoIB share one virtual clock. An
// interface joins its broadcast group by MADs while objects on which it depends are removed.
#include <kern/abi/explore.h>
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "../fixture.hpp"

using namespace ipoib;
using kern::kunit::eventually;
using kern::kunit::Test;

namespace
{

constexpr const char *name = "ib0", *child_name = "ib0.8001";
constexpr u16 child_pkey = 0x8001;
/* Upper bound of the time of a join, in virtual time. */
constexpr u64 join_us = 2000;

/* A card with its driver and the interface on it. */
class Host
{
public:
	Host() { kern_explore_plug_card(KERN_EXPLORE_MLX4); }
	~Host() { pull(); }
	Host(const Host &) = delete;
	Host &operator=(const Host &) = delete;

	void pull()
	{
		if (std::exchange(there_, false))
			kern_explore_pull_card();
	}
	/* Returns a negative errno if there is no such interface. */
	static int up(const char *which = name, bool up = true)
	{
		kern::RtnlGuard rtnl;
		net_device *dev = kern_explore_netdev(which);
		return dev ? kern_kunit_netdev_up(dev, up) : -ENODEV;
	}
	static bool has_carrier()
	{
		kern::RtnlGuard rtnl;
		const net_device *dev = kern_explore_netdev(name);
		return dev && kern_netdev_carrier_ok(dev);
	}
	static bool joins() { return eventually(has_carrier); }

private:
	bool there_ = true;
};

/* Waits until the join has reached a point that the seed determines. */
void wait_for_join(Test &test)
{
	const auto us = static_cast<unsigned>(test.seed() % join_us);
	kern::sleep_us(us, us);
}

void card_can_be_removed_during_the_broadcast_group_join(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_EQ(Host::up(), 0);
	wait_for_join(test);
	host->pull();
	EXPECT_EQ(Host::up(), -ENODEV);
}

/* A child, whose partition has no broadcast group, is deleted while the card is removed. */
void card_can_be_removed_during_child_deletion(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_EQ(kern_explore_link_add(name, child_pkey), 0);
	ASSERT_EQ(Host::up(), 0);
	(void)Host::up(child_name);
	wait_for_join(test);
	{
		struct Administrator {
			Administrator()
			{
				auto made = kern::Thread::create(
					"administrator", kern::method<&Administrator::run>, this);
				if (made.ok())
					thread = made.take();
			}
			~Administrator() { ended.wait(); }
			int run()
			{
				(void)kern_explore_link_delete(child_name);
				ended.complete();
				return 0;
			}
			kern::Completion ended;
			kern::Thread thread;
		} administrator;
		host->pull();
	}
	EXPECT_EQ(Host::up(child_name), -ENODEV);
}

/*
 * The interface is closed while it joins. When it is opened again it joins, whatever the first
 * attempt has left.
 */
void interface_reopened_after_namespace_exit_joins_the_broadcast_group(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_EQ(Host::up(), 0);
	wait_for_join(test);
	ASSERT_EQ(kern_explore_namespace_end(name), 0);
	EXPECT_FALSE(Host::has_carrier());
	ASSERT_EQ(Host::up(), 0);
	EXPECT_TRUE(Host::joins());
}

/*
 * Allocations fail for a time in all tasks, work items and polls. When the interface is opened
 * again with enough memory, it joins.
 */
void interface_joins_the_broadcast_group_after_a_memory_shortage(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.there());
	kern_explore_failures(KERN_EXPLORE_EVERYBODY);
	(void)Host::up();
	wait_for_join(test);
	kern_explore_failures(KERN_EXPLORE_NONE);
	(void)Host::up(name, false);
	ASSERT_EQ(Host::up(), 0);
	EXPECT_TRUE(Host::joins());
}

} // namespace

KUNIT_SUITE(explore_on_a_card, KUNIT_CASE(card_can_be_removed_during_the_broadcast_group_join),
	    KUNIT_CASE(card_can_be_removed_during_child_deletion),
	    KUNIT_CASE(interface_reopened_after_namespace_exit_joins_the_broadcast_group),
	    KUNIT_CASE(interface_joins_the_broadcast_group_after_a_memory_shortage));
