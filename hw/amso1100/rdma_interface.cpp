// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "rdma_interface.hpp"

#include "ethernet.hpp"

namespace amso1100
{

struct RdmaNetdevOps {
	static RdmaInterface &of(void *owner) { return *static_cast<RdmaInterface *>(owner); }

	static int start_xmit(sk_buff *skb, net_device *)
	{
		kern_skb_drop(skb);
		return KERN_XMIT_OK;
	}
	static int open(void *owner)
	{
		RdmaInterface &self = of(owner);
		self.up_ = true;
		kern_ip_report_addresses(self.watcher_, true);
		kern_netdev_start_queues(self.dev_);
		return 0;
	}
	static void stop(void *owner)
	{
		RdmaInterface &self = of(owner);
		kern_netdev_stop_queues(self.dev_);
		kern_ip_report_addresses(self.watcher_, false);
		self.up_ = false;
	}
	static void set_rx_mode(void *) {}
	static int change_mtu(void *, unsigned int) { return 0; }
	/* The card's address cannot be changed, and it identifies the device. */
	static int set_address(void *, const u8 *) { return -EOPNOTSUPP; }
	static void set_rx_checksum(void *, bool) {}
	static void tx_timeout(void *, unsigned int) {}
	static void get_stats(void *, kern_net_stats *) {}
	static int get_iflink(void *owner) { return kern_netdev_ifindex(of(owner).dev_); }
	static void uninit(void *) {}
	static void destroy(void *owner) { kern::destroy(&of(owner)); }
	static void get_rings(void *, kern_rings *rings) { *rings = {}; }
	static int set_rings(void *, u32, u32) { return -EOPNOTSUPP; }
	static void get_coalesce(void *, kern_coalesce *rx, kern_coalesce *tx) { *rx = *tx = {}; }
	static int set_coalesce(void *, const kern_coalesce *, const kern_coalesce *)
	{
		return -EOPNOTSUPP;
	}
	static void get_link_speed(void *, kern_link_speed *speed) { *speed = {1000, true}; }
	static void get_counters(void *, u64 *) {}
};

namespace
{

constinit const kern_netdev_ops rdma_netdev_ops = {
	.start_xmit = RdmaNetdevOps::start_xmit,
	.header_create = create_header,
	.open = RdmaNetdevOps::open,
	.stop = RdmaNetdevOps::stop,
	.set_rx_mode = RdmaNetdevOps::set_rx_mode,
	.change_mtu = RdmaNetdevOps::change_mtu,
	.set_address = RdmaNetdevOps::set_address,
	.set_rx_checksum = RdmaNetdevOps::set_rx_checksum,
	.tx_timeout = RdmaNetdevOps::tx_timeout,
	.get_stats = RdmaNetdevOps::get_stats,
	.get_iflink = RdmaNetdevOps::get_iflink,
	.uninit = RdmaNetdevOps::uninit,
	.destroy = RdmaNetdevOps::destroy,
	.get_rings = RdmaNetdevOps::get_rings,
	.set_rings = RdmaNetdevOps::set_rings,
	.get_coalesce = RdmaNetdevOps::get_coalesce,
	.set_coalesce = RdmaNetdevOps::set_coalesce,
	.get_link_speed = RdmaNetdevOps::get_link_speed,
	.counter_count = 0,
	.counter_names = nullptr,
	.get_counters = RdmaNetdevOps::get_counters,
	.driver_name = "weft_amso1100",
};

} // namespace

kern::Result<RdmaInterface *> RdmaInterface::create(Rnic &rnic)
{
	constexpr u8 broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	auto made = KERN_TRY(kern::make<RdmaInterface>(kern::Gfp::kernel, rnic));
	net_device *const dev = kern_netdev_alloc("iw%d", 1);
	if (!dev)
		return kern::Error{-ENOMEM};
	kern_netdev_config config{};
	config.ops = &rdma_netdev_ops;
	config.owner = made.get();
	config.parent = rnic.dma_device();
	config.type = 1; /* Ethernet */
	config.addr_len = sizeof(broadcast);
	config.hard_header_len = 14;
	config.mtu = 1500;
	config.min_mtu = wire::least_mtu;
	config.max_mtu = wire::most_mtu;
	config.gso_max_size = 65536;
	config.watchdog_ms = 5000;
	config.address = rnic.address();
	config.broadcast = broadcast;
	kern_netdev_configure(dev, &config);
	made->dev_ = dev;
	made->watcher_ = kern_ip_watch_addresses(
		dev,
		[](void *context, u32 address, u32 mask, bool added) {
			auto &self = *static_cast<RdmaInterface *>(context);
			if (self.up_)
				self.change(address, mask, added);
		},
		made.get());
	if (!made->watcher_) {
		kern_netdev_free(dev);
		return kern::Error{-ENOMEM};
	}
	int status;
	{
		kern::RtnlGuard guard;
		status = kern_netdev_register_locked(dev);
		if (!status)
			kern_netdev_carrier(dev, true);
	}
	if (status) {
		kern_ip_unwatch_addresses(made->watcher_);
		kern_netdev_free(dev);
		return kern::Error{status};
	}
	return made.release();
}

void RdmaInterface::remove()
{
	Rnic &rnic = rnic_;
	{
		kern::RtnlGuard guard;
		kern_netdev_unregister_locked(dev_);
		/*
		 * Must precede the release of the guard, which frees this object. Functions that
		 * report address changes also hold the rtnl lock.
		 */
		kern_ip_unwatch_addresses(watcher_);
	}
	rnic.flush_address_changes();
}

/* Context: rtnl lock held; must not wait for the card. */
void RdmaInterface::change(u32 address, u32 mask, bool added)
{
	rnic_.change_address(added ? wire::ConfigOption::add_address
				   : wire::ConfigOption::delete_address,
			     address, mask);
}

} // namespace amso1100
