// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains test cases with one defect of a network interface each, which core/kern/sim must report.
// tools/explore/tests/stack_test.cpp lists the expected reports.
#include <kern/abi/kunit.h>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/netdev.hpp>
#include <kern/rcu.hpp>

using kern::kunit::Test;

namespace
{

constexpr u8 address[20] = {};

/* An interface that keeps its packets, or passes them to the stack incorrectly. */
class Interface : public kern::Napi<Interface>
{
public:
	explicit Interface(bool transmits = false)
	{
		kern::RtnlGuard rtnl;
		dev_ = kern_netdev_alloc("injected%d", 1);
		kern_netdev_config config{};
		config.ops = &ops;
		config.owner = this;
		config.mtu = config.max_mtu = 1500;
		config.addr_len = sizeof(address);
		config.address = config.broadcast = address;
		kern_netdev_configure(dev_, &config);
		(void)kern_netdev_register_locked(dev_);
		add(dev_, transmits);
	}
	void up()
	{
		kern::RtnlGuard rtnl;
		(void)kern_kunit_netdev_up(dev_, true);
	}
	void remove()
	{
		kern::RtnlGuard rtnl;
		kern_netdev_unregister_locked(dev_);
	}
	int index() const { return kern_netdev_ifindex(dev_); }
	int send() { return kern_kunit_netdev_send(dev_, address, 0x0800, 100); }
	int poll(int) { return work; }

	int work = 0; /* result of the next poll */

	sk_buff *kept = nullptr;
	netdev_queue *queue() { return kern_netdev_tx_queue(dev_, 0); }

private:
	static Interface &of(void *owner) { return *static_cast<Interface *>(owner); }
	static int transmit(sk_buff *skb, net_device *dev)
	{
		kern::netdev_owner<Interface>(dev).kept = skb;
		return KERN_XMIT_OK;
	}
	static constexpr kern_netdev_ops ops = {
		.start_xmit = transmit,
		.header_create = [](sk_buff *, net_device *, unsigned short, const void *,
				    const void *, unsigned int) { return 0; },
		.open = [](void *) { return 0; },
		.stop = [](void *) {},
		.set_rx_mode = [](void *) {},
		.uninit = [](void *) {},
		.destroy = [](void *) {},
	};

	net_device *dev_;
};

void napi_disabled_twice_is_reported(Test &)
{
	Interface interface;
	interface.enable();
	interface.disable();
	interface.disable();
}

void napi_enabled_twice_is_reported(Test &)
{
	Interface interface;
	interface.enable();
	interface.enable();
}

void napi_deleted_while_enabled_is_reported(Test &)
{
	Interface interface;
	interface.enable();
	interface.del();
}

/* Disabling NAPI may wait for a poll, and so may sleep, which a read-side section forbids. */
void napi_disabled_in_rcu_section_is_reported(Test &)
{
	Interface interface;
	interface.enable();
	kern::rcu::ReadGuard reading;
	interface.disable();
}

/* The budget of a poll is for received packets. */
void napi_poll_that_counts_transmissions_against_its_budget_is_reported(Test &)
{
	Interface interface(true);
	interface.work = 1;
	interface.enable();
	(void)interface.schedule_from_task();
	interface.disable();
}

void leaked_skb_is_reported(Test &test)
{
	Interface interface;
	interface.up();
	EXPECT_EQ(interface.send(), 0);
	interface.remove();
}

void skb_freed_while_owned_by_the_device_is_reported(Test &)
{
	kern::kunit::FakeDevice device("injected");
	Interface interface;
	interface.up();
	(void)interface.send();
	kern_tx_piece piece{};
	(void)kern_skb_map(device.native(), interface.kept, 0, &piece);
	kern_skb_drop(interface.kept);
}

void transmit_completion_of_more_bytes_than_sent_is_reported(Test &)
{
	Interface interface;
	(void)kern_txq_sent(interface.queue(), 100);
	kern_txq_completed(interface.queue(), 1, 101);
}

void leaked_net_device_is_reported(Test &test)
{
	Interface interface;
	EXPECT_EQ(interface.index(), 1);
}

void net_device_change_without_rtnl_is_reported(Test &)
{
	Interface interface;
	(void)kern_netdev_use_tx_queues(nullptr, 1);
}

} // namespace

KUNIT_SUITE(stack_defects, KUNIT_CASE(napi_disabled_twice_is_reported),
	    KUNIT_CASE(napi_enabled_twice_is_reported),
	    KUNIT_CASE(napi_deleted_while_enabled_is_reported),
	    KUNIT_CASE(napi_disabled_in_rcu_section_is_reported),
	    KUNIT_CASE(napi_poll_that_counts_transmissions_against_its_budget_is_reported),
	    KUNIT_CASE(leaked_skb_is_reported),
	    KUNIT_CASE(skb_freed_while_owned_by_the_device_is_reported),
	    KUNIT_CASE(transmit_completion_of_more_bytes_than_sent_is_reported),
	    KUNIT_CASE(leaked_net_device_is_reported),
	    KUNIT_CASE(net_device_change_without_rtnl_is_reported));
