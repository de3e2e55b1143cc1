// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the methods that the network stack calls, and forwards each call to its Interface. */
#include "interface.hpp"

#include <kern/log.hpp>
#include <rdma/ib_cache.h>

namespace ipoib
{
namespace
{

/* The names are in the order of Interface::get_counters(). */
constexpr const char *counter_names[] = {
	"rx_too_short",
	"rx_too_long",
	"rx_unknown_type",
	"rx_from_self",
	"rx_no_memory",
	"rx_errors",
	"rx_polls",
	"rx_rearms_missed",
	"rx_pages_reused",
	"rx_pages_allocated",
	"tx_inlined",
	"tx_segmented",
	"tx_doorbells",
	"tx_completions",
	"tx_queue_stops",
	"tx_rearms_missed",
	"tx_unresolved_dropped",
	"path_queries",
	"connected_tx",
	"connected_tx_dropped",
	"connected_rx",
	"connected_rx_no_memory",
	"connected_tx_unsummed",
	"connected_rx_unsummed",
	"connected_rx_unsummed_lost",
	"connections_made",
	"connections_failed",
	"connections_accepted",
	"connections_refused",
};

} // namespace

/* Calls the Interface's private methods with the signatures of kern_netdev_ops. */
struct NetdevOps {
	static Interface &of(void *owner) { return *static_cast<Interface *>(owner); }

	static int start_xmit(sk_buff *skb, net_device *dev)
	{
		return kern::netdev_owner<Interface>(dev).start_xmit(skb);
	}

	static int start_xmit_connected(sk_buff *skb, net_device *dev)
	{
		return kern::netdev_owner<Interface>(dev).start_xmit_connected(skb);
	}

	/*
	 * Prepends the encapsulation header, and in front of it the address for start_xmit(). A
	 * packet that is sent on a packet socket without an address gets an empty one.
	 */
	static int header_create(sk_buff *skb, net_device *, unsigned short type, const void *daddr,
				 const void *, unsigned int)
	{
		auto *header = static_cast<Header *>(kern_skb_push(skb, sizeof(Header)));
		header->type = type;
		header->reserved = 0;
		void *const to = kern_skb_push(skb, address_bytes);
		if (!daddr) {
			__builtin_memset(to, 0, address_bytes);
			return -static_cast<int>(hard_header_bytes);
		}
		__builtin_memcpy(to, daddr, address_bytes);
		return hard_header_bytes;
	}

	static int open(void *owner) { return of(owner).open(); }
	static void stop(void *owner) { of(owner).stop(); }
	static void set_rx_mode(void *owner) { of(owner).multicast_.list_changed(); }
	static int change_mtu(void *owner, unsigned int mtu) { return of(owner).change_mtu(mtu); }
	static int set_address(void *owner, const u8 *address)
	{
		return of(owner).set_address(*reinterpret_cast<const HardwareAddress *>(address));
	}
	static void set_rx_checksum(void *owner, bool on)
	{
		of(owner).queues_.set_checksum(on);
		of(owner).connected_.passive().set_takes_unsummed(on);
	}
	static void tx_timeout(void *owner, unsigned int) { of(owner).tx_timeout(); }
	static void get_stats(void *owner, kern_net_stats *stats) { of(owner).get_stats(*stats); }

	static int get_iflink(void *owner)
	{
		const Interface &interface = of(owner);
		return kern_netdev_ifindex(
			(interface.parent_ ? interface.parent_ : &interface)->dev_);
	}

	/*
	 * Called after the interface was stopped and unregistered. References to the device may
	 * still exist.
	 */
	static void uninit(void *owner) { of(owner).uninit(); }

	/* Called without the rtnl lock, so it can wait for work items that take that lock. */
	static void destroy(void *owner)
	{
		Interface &interface = of(owner);
		interface.refresh_work_.cancel();
		interface.recover_work_.cancel();
		interface.too_big_work_.cancel();
		interface.answer_too_big();
		kern::destroy(&interface);
	}

	static void get_rings(void *owner, kern_rings *rings)
	{
		const Queues &queues = of(owner).queues_;
		*rings = {queues.receive_depth(), ReceiveQueue::max_depth, queues.transmit_depth(),
			  TransmitQueue::max_depth};
	}
	static int set_rings(void *owner, u32 rx, u32 tx) { return of(owner).set_rings(rx, tx); }
	static void get_coalesce(void *owner, kern_coalesce *rx, kern_coalesce *tx)
	{
		of(owner).queues_.get_coalesce(*rx, *tx);
	}
	static int set_coalesce(void *owner, const kern_coalesce *rx, const kern_coalesce *tx)
	{
		return of(owner).queues_.set_coalesce(*rx, *tx);
	}

	static void get_link_speed(void *owner, kern_link_speed *speed)
	{
		constexpr u32 lane_mbps_sdr = 2500;
		const Interface &interface = of(owner);
		ib_port_attr attr;
		*speed = {};
		if (ib_query_port(interface.device_, interface.port_num_, &attr) ||
		    attr.state != IB_PORT_ACTIVE)
			return;
		const int lanes =
			ib_width_enum_to_int(static_cast<ib_port_width>(attr.active_width));
		u32 lane = 0;
		switch (attr.active_speed) {
		case IB_SPEED_SDR:
			lane = lane_mbps_sdr;
			break;
		case IB_SPEED_DDR:
			lane = 2 * lane_mbps_sdr;
			break;
		case IB_SPEED_QDR:
		case IB_SPEED_FDR10:
			lane = 4 * lane_mbps_sdr;
			break;
		case IB_SPEED_FDR:
			lane = 14000;
			break;
		case IB_SPEED_EDR:
			lane = 25000;
			break;
		}
		if (lanes > 0 && lane)
			*speed = {lane * static_cast<u32>(lanes), true};
	}

	static void get_counters(void *owner, u64 *values) { of(owner).get_counters(values); }
	static void get_firmware_version(void *owner, char *text, unsigned int size)
	{
		char version[IB_FW_VERSION_NAME_MAX];

		ib_get_device_fw_str(of(owner).device(), version);
		kern_format(text, size, "%s", version);
	}
};

int netdev_start_xmit_connected(sk_buff *skb, net_device *dev)
{
	return NetdevOps::start_xmit_connected(skb, dev);
}

constinit const kern_netdev_ops netdev_ops = {
	.start_xmit = NetdevOps::start_xmit,
	.header_create = NetdevOps::header_create,
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
	.counter_count = sizeof(counter_names) / sizeof(counter_names[0]),
	.counter_names = counter_names,
	.get_counters = NetdevOps::get_counters,
	.driver_name = "weft_ipoib",
	.get_firmware_version = NetdevOps::get_firmware_version,
};

/*
 * Takes no lock, as all readers of statistics: the queues and their counters exist as long as the
 * device.
 */
void Interface::get_stats(kern_net_stats &stats) const
{
	const auto &in = queues_.received();
	const TransmitCounters out = queues_.sent();
	const auto &large_in = connected_.received();
	const TransmitCounters &large_out = connected_.active().counters();
	stats.rx_packets = in.packets + large_in.packets;
	stats.rx_bytes = in.bytes + large_in.bytes;
	stats.multicast = in.multicast;
	stats.rx_length_errors =
		in.too_short + in.too_long + large_in.too_short + large_in.too_long;
	stats.rx_errors = in.errors + large_in.errors + stats.rx_length_errors;
	stats.rx_dropped =
		in.unknown_type + in.no_memory + large_in.unknown_type + large_in.no_memory;
	stats.tx_packets = out.packets + large_out.packets;
	stats.tx_bytes = out.bytes + large_out.bytes;
	stats.tx_errors = out.errors + large_out.errors;
	stats.tx_dropped =
		__atomic_load_n(&tx_dropped_, __ATOMIC_RELAXED) + connected_.active().dropped();
}

void Interface::get_counters(u64 *values) const
{
	const auto &in = queues_.received();
	const TransmitCounters out = queues_.sent();
	const u64 all[] = {
		in.too_short,
		in.too_long,
		in.unknown_type,
		in.from_self,
		in.no_memory,
		in.errors,
		in.polls,
		in.rearms_missed,
		in.pages_reused,
		in.pages_allocated,
		out.inlined,
		out.segmented,
		out.doorbells,
		out.completions,
		out.queue_stops,
		out.rearms_missed,
		tx_dropped_,
		path_queries_,
		connected_.active().counters().packets,
		connected_.active().dropped(),
		connected_.received().packets,
		connected_.received().no_memory,
		connected_.active().unsummed(),
		connected_.received().unsummed,
		connected_.received().unsummed_lost,
		connected_.active().made(),
		connected_.active().failed(),
		connected_.passive().accepted(),
		connected_.passive().rejected(),
	};
	static_assert(sizeof(all) / sizeof(all[0]) ==
		      sizeof(counter_names) / sizeof(counter_names[0]));
	__builtin_memcpy(values, all, sizeof(all));
}

Interface *Interface::of(net_device *dev)
{
	return static_cast<Interface *>(kern_netdev_owner_of(dev, &netdev_ops));
}

} // namespace ipoib
