// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the lookup of the interface on which an InfiniBand connection request arrived. The lookup
// of IP addresses is tested in a guest (core/rdma_ucm/tests/guest/connections.py).
#include <kern/errno.h>
#include <kern/abi/ip.h>
#include <kern/abi/netdev.h>
#include <kern/kunit.hpp>

using kern::kunit::Test;

namespace
{

constexpr u16 infiniband = 32; /* ARPHRD_INFINIBAND */
constexpr u8 link_address[KERN_LINK_ADDRESS_SIZE] = {0, 0, 0, 5, 0xfe, 0x80, 0, 0, 0, 0,
						     0, 0, 0, 2, 0xc9, 3,    0, 0, 0, 1};

int not_supported(void *)
{
	return -EOPNOTSUPP;
}

void nothing(void *) {}

/* A registered interface of partition 0x0123, which is down. */
class PartitionInterface
{
public:
	PartitionInterface()
	{
		static constexpr u8 broadcast[KERN_LINK_ADDRESS_SIZE] = {
			0, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0x81, 0x23,
			0, 0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
		static constexpr kern_netdev_ops ops = {
			.open = not_supported,
			.stop = nothing,
			.set_rx_mode = nothing,
			.get_stats = [](void *, kern_net_stats *) {},
			.get_iflink = [](void *) { return 0; },
			.uninit = nothing,
			.destroy = nothing,
		};
		const kern_netdev_config config = {.ops = &ops,
						   .type = infiniband,
						   .addr_len = KERN_LINK_ADDRESS_SIZE,
						   .hard_header_len = 4,
						   .tx_queue_len = 16,
						   .mtu = 2044,
						   .min_mtu = 68,
						   .max_mtu = 2044,
						   .watchdog_ms = 1000,
						   .address = link_address,
						   .broadcast = broadcast};
		dev_ = kern_netdev_alloc("kern_ip%d", 1);
		if (!dev_)
			return;
		kern_netdev_configure(dev_, &config);
		kern_rtnl_lock();
		registered_ = kern_netdev_register_locked(dev_) == 0;
		kern_rtnl_unlock();
	}
	~PartitionInterface()
	{
		if (registered_) {
			kern_rtnl_lock();
			kern_netdev_unregister_locked(dev_);
			kern_rtnl_unlock();
		} else if (dev_) {
			kern_netdev_free(dev_);
		}
	}
	PartitionInterface(const PartitionInterface &) = delete;
	PartitionInterface &operator=(const PartitionInterface &) = delete;

	bool registered() const { return registered_; }

private:
	net_device *dev_ = nullptr;
	bool registered_ = false;
};

/* Returns -EHOSTUNREACH if the interface exists and is down. */
int incoming(u16 pkey)
{
	const kern_ip_address here{.bytes = {10, 0, 0, 1}}, there{.bytes = {10, 0, 0, 2}};
	kern_ip_interface found;
	return kern_ip_incoming(link_address + 4, pkey, &here, &there, &found);
}

/* A limited member's request to a full member has the P_Key of the limited one. */
void ip_interface_lookup_ignores_the_pkey_membership_bit(Test &test)
{
	{
		PartitionInterface interface;
		ASSERT_TRUE(interface.registered());
		EXPECT_EQ(incoming(0x8123), -EHOSTUNREACH);
		EXPECT_EQ(incoming(0x0123), -EHOSTUNREACH);
		EXPECT_EQ(incoming(0x8124), -ENODEV);
		EXPECT_EQ(incoming(0x0000), -ENODEV);
	}
	EXPECT_EQ(incoming(0x8123), -ENODEV);
}

} // namespace

KUNIT_SUITE(kern_ip, KUNIT_CASE(ip_interface_lookup_ignores_the_pkey_membership_bit));
