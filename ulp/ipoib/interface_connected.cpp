// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements what an interface does differently in connected mode (RFC 4755) than in datagram mode.
 */
#include "interface.hpp"

#include <kern/log.hpp>

namespace ipoib
{
namespace
{

/*
 * Maximum number of packets that wait for an ICMP "packet too big" reply; more replies at a time
 * are of no use.
 */
constexpr u32 too_big_max = 64;

} // namespace

/*
 * The start_xmit method of connected mode; datagram mode does not run any of this code. Packets to
 * peers without an established connection are sent as datagrams if they are short enough. Context:
 * softirq, one call at a time for each queue.
 */
int Interface::start_xmit_connected(sk_buff *skb)
{
	const auto &to = *reinterpret_cast<const HardwareAddress *>(kern::skb_data(skb));
	TransmitQueue &queue = queues_.transmit(skb);
	kern::rcu::ReadGuard reading;
	Destination *destination = destinations_.find(to);
	ib_ah *ah = destination ? destination->ah() : nullptr;

	if (!ah) {
		send_unresolved(skb, to);
		return KERN_XMIT_OK;
	}
	destination->touch();
	/*
	 * The current path is used until the query ends. Packets to a connection do not pass
	 * through send_unresolved(), which queries stale paths in datagram mode, so the query
	 * starts here.
	 */
	if (DestinationTable::is_stale(*destination)) [[unlikely]]
		refresh_path(*destination);
	ActiveConnections::Outcome outcome{};
	if (to.takes_connections() && !to.is_multicast())
		outcome = connected_.send(*destination, skb, datagram_bytes());
	if (outcome.taken) {
		queue.flush_unless_more();
	} else if (!fits_datagram(skb)) {
		report_too_big(skb, outcome.largest(largest_datagram()));
		queue.flush_unless_more();
	} else {
		send_resolved(queue, skb, *destination, ah);
	}
	return KERN_XMIT_OK;
}

/*
 * Returns the size of the largest IP packet in a datagram: the broadcast group's limit or, as long
 * as that is unknown, the port's. Context: any.
 */
u32 Interface::largest_datagram() const
{
	const unsigned domain = __atomic_load_n(&domain_mtu_, __ATOMIC_RELAXED);
	return domain ? domain : max_datagram_mtu_;
}

/* Returns largest_datagram() plus the encapsulation header. Context: any. */
u32 Interface::datagram_bytes() const
{
	return largest_datagram() + static_cast<u32>(sizeof(Header));
}

/*
 * Returns true if the packet, or each of the segments that the device creates from it, fits into a
 * datagram.
 */
bool Interface::fits_datagram(sk_buff *skb) const
{
	kern_tx_packet packet;
	kern_skb_tx_packet(skb, &packet);
	const u32 length = packet.gso_size ? packet.header_length + packet.gso_size : packet.length;
	return length - address_bytes <= datagram_bytes();
}

/*
 * Queues a packet for which the sender gets an ICMP error. A work item sends the error, because
 * doing so may call start_xmit, and the lock of a transmit queue is held here.
 */
void Interface::report_too_big(sk_buff *skb, u32 limit)
{
	{
		kern::Guard guard(too_big_lock_);
		if (too_big_.length < too_big_max) {
			*static_cast<u32 *>(kern_skb_control(skb)) = limit;
			kern_skb_enqueue(&too_big_, skb);
			too_big_work_.queue();
			return;
		}
	}
	count(tx_dropped_);
	kern_skb_drop(skb);
}

/* Sends the ICMP errors for the packets that report_too_big() has queued. Context: work queue. */
void Interface::answer_too_big()
{
	kern_skb_queue packets{};
	{
		kern::Guard guard(too_big_lock_);
		std::swap(packets, too_big_);
	}
	while (sk_buff *skb = kern_skb_dequeue(&packets)) {
		count(tx_dropped_);
		kern_skb_too_big(skb, *static_cast<const u32 *>(kern_skb_control(skb)));
	}
}

kern::Result<> Interface::start_connections()
{
	if (mode() != Mode::connected)
		return {};
	ConnectionResources resources{};
	resources.dev = dev_;
	resources.device = device_;
	resources.port_num = port_num_;
	resources.pkey_index = pkey_index_;
	KERN_TRY(queues_.to(Queues::State::made));
	resources.qpn = qp()->qp_num;
	resources.pd = pd_;
	return connected_.start(resources);
}

/*
 * Changes the mode. If the interface is up, its queues are restarted. Errors: EOPNOTSUPP if the
 * device has no SRQs or the port has no CM; those of starting the queues, after which the interface
 * is in datagram mode. Context: rtnl lock.
 */
int Interface::set_mode(Mode mode)
{
	if (mode == this->mode())
		return 0;
	if (mode == Mode::connected && !Connected::possible(device_, port_num_))
		return -EOPNOTSUPP;
	if (state() <= State::down) {
		adopt_mode(mode);
		return 0;
	}
	kern::ignore(bring_up_.to(State::halted));
	adopt_mode(mode);
	auto started = bring_up_.to(State::waiting);
	if (started.ok()) {
		refresh_work_.queue();
		return 0;
	}
	if (mode == Mode::connected)
		adopt_mode(Mode::datagram);
	restart();
	return started.error();
}

/*
 * Sets the mode and the device's attributes that depend on it. The queues do not run, so no packet
 * is sent meanwhile. Context: rtnl lock.
 */
void Interface::adopt_mode(Mode mode)
{
	mode_.store_relaxed(static_cast<u8>(mode));
	const bool connected = mode == Mode::connected;
	kern_netdev_set_start_xmit(dev_,
				   connected ? netdev_start_xmit_connected : netdev_ops.start_xmit);
	/*
	 * A reliable connection does not segment packets. It does not compute checksums either, but
	 * peers can agree to omit them (ConnectionData). Datagrams have checksums as usual.
	 */
	kern_netdev_set_segmentation(dev_, !connected);
	publish_address();
	const unsigned limit = connected ? connected_mtu : max_datagram_mtu_;
	kern_netdev_set_max_mtu(dev_, limit);
	set_mtu(connected ? connected_mtu : datagram_mtu());
}

/*
 * Sets the device's MTU, but keeps the value that the administrator has set for datagram mode.
 * Context: rtnl lock.
 */
void Interface::set_mtu(unsigned mtu)
{
	const unsigned wanted = wanted_mtu_;
	kern_netdev_set_mtu(dev_, mtu);
	wanted_mtu_ = wanted;
}

/*
 * Returns the MTU of datagram mode: the administrator's value, limited by the MTU of the broadcast
 * group. While that is unknown, the limit is the usual MTU of 2048 bytes.
 */
unsigned Interface::datagram_mtu() const
{
	const unsigned domain = domain_mtu_ ? domain_mtu_ : ip_mtu(2048);
	return domain < wanted_mtu_ ? domain : wanted_mtu_;
}

} // namespace ipoib
