// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Connected mode (RFC 4755): what an interface does differently from datagram mode. */
#include "interface.hpp"

#include <kern/log.hpp>

namespace ipoib
{
namespace
{

/* Limit of waiting ICMP replies to packets that were too long; more at a time are of no use. */
constexpr u32 too_big_max = 64;

} // namespace

/*
 * start_xmit of connected mode; datagram mode does not run any of it. Packets without an
 * established connection are sent as datagrams, if they are not too long for one. Context: softirq,
 * one at a time for each queue.
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
	 * It is used meanwhile, and what is sent by a connection never comes to where others are
	 * asked for.
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
 * The largest IP packet without a connection: the broadcast group's limit or, as long as that is
 * unknown, the port's. Context: any.
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

/* The packet, or each that the device cuts it into. */
bool Interface::fits_datagram(sk_buff *skb) const
{
	kern_tx_packet packet;
	kern_skb_tx_packet(skb, &packet);
	const u32 length = packet.gso_size ? packet.header_length + packet.gso_size : packet.length;
	return length - address_bytes <= datagram_bytes();
}

/*
 * The sender is notified in a task, because the notification may reenter this code, where a queue's
 * lock is held.
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

/* Context: work queue. */
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
	ConnectionLimit room{};
	room.dev = dev_;
	room.device = device_;
	room.port_num = port_num_;
	room.pkey_index = pkey_index_;
	KERN_TRY(queues_.to(Queues::State::made));
	room.qpn = qp()->qp_num;
	room.pd = pd_;
	return connected_.start(room);
}

/*
 * To another mode, and up again if it was up. Errors: EOPNOTSUPP for a device without SRQs or the
 * CM; those of the start, which leave it in datagram mode. Context: rtnl lock.
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

/* Nothing is sent meanwhile, because the queues do not run. Context: rtnl lock. */
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

/* Sets it without an administrator's request, which stays recorded. Context: rtnl lock. */
void Interface::set_mtu(unsigned mtu)
{
	const unsigned wanted = wanted_mtu_;
	kern_netdev_set_mtu(dev_, mtu);
	wanted_mtu_ = wanted;
}

/*
 * The MTU of datagram mode: the administrator's, limited by that of the broadcast domain, or, while
 * that is unknown, by the usual one of any domain.
 */
unsigned Interface::datagram_mtu() const
{
	const unsigned domain = domain_mtu_ ? domain_mtu_ : ip_mtu(2048);
	return domain < wanted_mtu_ ? domain : wanted_mtu_;
}

} // namespace ipoib
