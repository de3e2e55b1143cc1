// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the methods of the network interface that the network stack calls. */
#include "ethernet.hpp"

namespace amso1100
{

int create_header(sk_buff *skb, net_device *dev, unsigned short type, const void *daddr,
		  const void *saddr, unsigned int length)
{
	constexpr unsigned short type_802_3 = 0x0001, type_802_2 = 0x0004;
	constexpr int bytes = 14;
	auto *const header = static_cast<u8 *>(kern_skb_push(skb, bytes));
	const unsigned int field = type == type_802_3 || type == type_802_2 ? length : type;
	if (daddr)
		__builtin_memcpy(header, daddr, 6);
	else
		__builtin_memset(header, 0, 6);
	__builtin_memcpy(header + 6, saddr ? saddr : kern_netdev_address(dev), 6);
	header[12] = static_cast<u8>(field >> 8);
	header[13] = static_cast<u8>(field);
	return daddr ? bytes : -bytes;
}

struct NetdevOps {
	static Ethernet &of(void *owner) { return *static_cast<Ethernet *>(owner); }

	static int start_xmit(sk_buff *skb, net_device *dev)
	{
		return kern::netdev_owner<Ethernet>(dev).start_xmit(skb);
	}

	static int open(void *owner) { return of(owner).open(); }
	static void stop(void *owner) { of(owner).stop(); }
	/* The card receives the frames of all groups, so it needs no list. */
	static void set_rx_mode(void *) {}
	/*
	 * The MTU cannot be changed while the interface is up, because the buffers were allocated
	 * for it.
	 */
	static int change_mtu(void *owner, unsigned int)
	{
		return of(owner).state_ == Ethernet::State::up ? -EBUSY : 0;
	}
	/* The card's address cannot be changed. */
	static int set_address(void *, const u8 *) { return -EOPNOTSUPP; }
	static void set_rx_checksum(void *, bool) {}
	static void tx_timeout(void *owner, unsigned int) { of(owner).tx_timeout(); }
	static void get_stats(void *owner, kern_net_stats *stats) { of(owner).get_stats(*stats); }
	static int get_iflink(void *owner) { return kern_netdev_ifindex(of(owner).dev_); }
	static void uninit(void *) {}
	static void destroy(void *owner)
	{
		of(owner).del();
		kern::destroy(&of(owner));
	}
	static void get_rings(void *, kern_rings *rings)
	{
		*rings = {wire::receive_entries, wire::receive_entries, wire::most_transmits,
			  wire::most_transmits};
	}
	static int set_rings(void *, u32, u32) { return -EOPNOTSUPP; }
	static void get_coalesce(void *, kern_coalesce *rx, kern_coalesce *tx) { *rx = *tx = {}; }
	static int set_coalesce(void *, const kern_coalesce *, const kern_coalesce *)
	{
		return -EOPNOTSUPP;
	}
	static void get_link_speed(void *, kern_link_speed *speed) { *speed = {1000, true}; }
	static void get_counters(void *, u64 *) {}
};

constinit const kern_netdev_ops netdev_ops = {
	.start_xmit = NetdevOps::start_xmit,
	.header_create = create_header,
	.open = NetdevOps::open,
	.stop = NetdevOps::stop,
	.set_rx_mode = NetdevOps::set_rx_mode,
	.change_mtu = NetdevOps::change_mtu,
	.set_address = NetdevOps::set_address,
	.set_rx_checksum = NetdevOps::set_rx_checksum,
	.tx_timeout = NetdevOps::tx_timeout,
	.get_stats = NetdevOps::get_stats,
	.get_iflink = NetdevOps::get_iflink,
	.uninit = NetdevOps::uninit,
	.destroy = NetdevOps::destroy,
	.get_rings = NetdevOps::get_rings,
	.set_rings = NetdevOps::set_rings,
	.get_coalesce = NetdevOps::get_coalesce,
	.set_coalesce = NetdevOps::set_coalesce,
	.get_link_speed = NetdevOps::get_link_speed,
	.counter_count = 0,
	.counter_names = nullptr,
	.get_counters = NetdevOps::get_counters,
	.driver_name = "weft_amso1100",
};

} // namespace amso1100
