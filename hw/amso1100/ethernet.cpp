// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ethernet.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>

namespace amso1100
{
namespace
{

constexpr unsigned short arphrd_ether = 1;
constexpr unsigned int header_bytes = 14;
constexpr unsigned int usual_mtu = 1500;
/* Minimum space for a frame, for which the card's own driver allocated its buffers. */
constexpr u32 min_frame_bytes = 1544;
constexpr unsigned int watchdog_ms = 6000;
/* Time limit for frames in flight when the interface is stopped. */
constexpr unsigned int drain_ms = 100;
/* A smaller value in the type field is a length, and an LLC header follows. */
constexpr u16 least_type = 0x600;
constexpr u16 type_llc = 0x0004;

} // namespace

Ethernet::Ethernet(Parts parts) : dma_device_(parts.dev), registers_(*parts.registers)
{
	__builtin_memcpy(address_, parts.page->host_address, sizeof(address_));
	receives_.attach(parts.rings.view(0, wire::transmit_ring - wire::receive_ring),
			 parts.rings.view(wire::receive_index - wire::receive_ring, sizeof(u32)),
			 parts.page->receive_index);
	kern::Guard guard(lock_);
	transmits_.attach(parts.rings.view(wire::transmit_ring - wire::receive_ring,
					   wire::transmit_entries * wire::transmit::size));
}

kern::Result<Ethernet *> Ethernet::create(Parts parts)
{
	constexpr u8 broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	device *const parent = parts.dev;
	auto made = KERN_TRY(kern::make<Ethernet>(kern::Gfp::kernel, static_cast<Parts &&>(parts)));
	net_device *const dev = kern_netdev_alloc("eth%d", 1);
	if (!dev)
		return kern::Error{-ENOMEM};
	kern_netdev_config config{};
	config.ops = &netdev_ops;
	config.owner = made.get();
	config.parent = parent;
	config.type = arphrd_ether;
	config.addr_len = sizeof(broadcast);
	config.hard_header_len = header_bytes;
	config.tx_queue_len = 1000;
	config.mtu = usual_mtu;
	config.min_mtu = wire::least_mtu;
	config.max_mtu = wire::most_mtu;
	config.gso_max_size = 65536;
	config.watchdog_ms = watchdog_ms;
	config.address = made->address_;
	config.broadcast = broadcast;
	kern_netdev_configure(dev, &config);
	made->dev_ = dev;
	made->add(dev, false);
	if (const int status = kern_netdev_register_locked(dev)) {
		made->del();
		kern_netdev_free(dev);
		return kern::Error{status};
	}
	/* The card does not report the state of the link. */
	kern_netdev_carrier(dev, true);
	return made.release();
}

void Ethernet::remove()
{
	kern_netdev_unregister_locked(dev_);
}

int Ethernet::open()
{
	const auto started = start();
	if (!started.ok())
		return started.error();
	state_ = State::up;
	return 0;
}

kern::Result<> Ethernet::start()
{
	const u32 needed = kern_netdev_mtu(dev_) + header_bytes;
	/*
	 * Must precede the allocation, which frees the buffers that the card may still have owned
	 * when the interface was stopped.
	 */
	KERN_TRY(receives_.quiesce());
	KERN_TRY(receives_.allocate(dma_device_,
				    needed > min_frame_bytes ? needed : min_frame_bytes));
	reclaim_transmits();
	{
		kern::Guard guard(lock_);
		may_wake_ = true;
	}
	receives_.post_all();
	receives_.publish();
	enable();
	unmask();
	kern_netdev_start_queues(dev_);
	return {};
}

void Ethernet::stop()
{
	state_ = State::down;
	{
		kern::Guard guard(lock_);
		may_wake_ = false;
	}
	kern_netdev_stop_queues(dev_);
	disable();
	mask();
	const auto deadline = kern::Deadline::in_ms(drain_ms);
	for (bool empty = false; !empty && !deadline.passed();) {
		reap(0);
		kern::Guard guard(lock_);
		empty = transmits_.empty();
	}
	reclaim_transmits();
	/* Do not free memory that the card may still write. */
	if (receives_.quiesce().ok())
		receives_.release();
	else
		kern_dev_error_limited(dma_device_, "the card keeps its receive buffers\n");
}

/*
 * Drops all frames in the ring. This includes frames that were queued after the netdev queue was
 * stopped, by a sender that had checked the queue before.
 */
void Ethernet::reclaim_transmits()
{
	kern::Guard guard(lock_);
	transmits_.reset();
	for (u32 slot; transmits_.reclaim(slot);) {
		out_.dropped.add_relaxed(1);
		finish(slot, 0);
	}
}

int Ethernet::start_xmit(sk_buff *skb)
{
	kern_tx_packet packet;
	kern_skb_tx_packet(skb, &packet);
	/*
	 * A descriptor holds a whole frame. The interface does not announce support for fragments,
	 * so the skb must have none.
	 */
	Outgoing outgoing{skb, {}};
	if (packet.fragments || packet.length < header_bytes ||
	    packet.length > wire::most_mtu + header_bytes ||
	    kern_skb_map(dma_device_, skb, 0, &outgoing.piece) != 1) {
		out_.dropped.add_relaxed(1);
		kern_skb_drop(skb);
		return KERN_XMIT_OK;
	}
	kern::Guard guard(lock_);
	/*
	 * The netdev queue is stopped before the ring is full. So the ring is only full if other
	 * code has woken the queue.
	 */
	if (transmits_.full()) {
		kern_skb_unmap(dma_device_, skb, 0, &outgoing.piece);
		return KERN_XMIT_BUSY;
	}
	out_.packets.add_relaxed(1);
	out_.bytes.add_relaxed(packet.length);
	const u32 slot = transmits_.put(outgoing.piece.address, static_cast<u16>(packet.length));
	outgoing_[slot] = outgoing;
	if (transmits_.full())
		kern_txq_stop(kern_netdev_tx_queue(dev_, 0));
	return KERN_XMIT_OK;
}

void Ethernet::finish(u32 slot, int budget)
{
	Outgoing &done = outgoing_[slot];
	kern_skb_unmap(dma_device_, done.skb, 0, &done.piece);
	kern_skb_consume(done.skb, budget);
	done = {};
}

void Ethernet::reap(int budget)
{
	kern::Guard guard(lock_);
	for (u32 slot; transmits_.finished(slot);)
		finish(slot, budget);
	netdev_queue *const queue = kern_netdev_tx_queue(dev_, 0);
	if (budget && may_wake_ && kern_txq_stopped(queue) && !transmits_.full())
		kern_txq_wake(queue);
}

void Ethernet::tx_timeout()
{
	out_.errors.add_relaxed(1);
	/* Poll, in case that an interrupt was lost. */
	mask();
	(void)schedule();
}

bool Ethernet::interrupt()
{
	if (!registers_.read32(wire::reg::nisr0))
		return false;
	/* Mask first: the poll may have ended, and have unmasked, before schedule() returns. */
	mask();
	(void)schedule();
	return true;
}

/*
 * NAPI poll method. Acknowledges the interrupt before it checks the rings. So later frames either
 * are found by the check or raise the interrupt again.
 */
int Ethernet::poll(int budget)
{
	if (const u32 status = registers_.read32(wire::reg::nisr0))
		registers_.write32(wire::reg::nisr0, status);
	reap(budget);
	const int work = receive(budget);
	if (work < budget && complete_done(work))
		unmask();
	return work;
}

int Ethernet::receive(int budget)
{
	int work = 0;
	for (; work < budget; work++) {
		const u8 *bytes;
		u32 length;
		const auto arrival = receives_.peek(bytes, length);
		if (arrival == ReceiveRing::Arrival::none)
			break;
		if (arrival == ReceiveRing::Arrival::frame)
			pass_up(bytes, length);
		else
			length_errors_.add_relaxed(1);
		receives_.advance();
	}
	if (work)
		receives_.publish();
	return work;
}

/*
 * Passes a copy of the frame to the stack. The buffer is returned to the card, and the card cannot
 * change data that the stack has checked.
 */
void Ethernet::pass_up(const u8 *bytes, u32 length)
{
	u8 header[header_bytes];
	__builtin_memcpy(header, bytes, sizeof(header));
	const u16 type = static_cast<u16>(header[12] << 8 | header[13]);
	const bool group = header[0] & 1;
	u8 all = 0xff;
	for (unsigned int i = 0; i < 6; i++)
		all &= header[i];
	if (!group && __builtin_memcmp(header, address_, sizeof(address_)) != 0) {
		in_.errors.add_relaxed(1);
		return;
	}
	kern_rx_packet packet{};
	packet.mac_header = header;
	packet.mac_length = header_bytes;
	packet.data = bytes + header_bytes;
	packet.length = packet.copied = length - header_bytes;
	packet.protocol = type >= least_type ? type : type_llc;
	packet.type = !group        ? KERN_PACKET_HOST
		      : all == 0xff ? KERN_PACKET_BROADCAST
				    : KERN_PACKET_MULTICAST;
	if (!kern_napi_receive(this, dev_, &packet)) {
		in_.dropped.add_relaxed(1);
		return;
	}
	in_.packets.add_relaxed(1);
	in_.bytes.add_relaxed(length);
	if (group)
		multicast_.add_relaxed(1);
}

void Ethernet::get_stats(kern_net_stats &stats) const
{
	stats.rx_packets = in_.packets.load_relaxed();
	stats.rx_bytes = in_.bytes.load_relaxed();
	stats.rx_length_errors = length_errors_.load_relaxed();
	stats.rx_errors = in_.errors.load_relaxed() + stats.rx_length_errors;
	stats.rx_dropped = in_.dropped.load_relaxed();
	stats.multicast = multicast_.load_relaxed();
	stats.tx_packets = out_.packets.load_relaxed();
	stats.tx_bytes = out_.bytes.load_relaxed();
	stats.tx_errors = out_.errors.load_relaxed();
	stats.tx_dropped = out_.dropped.load_relaxed();
}

} // namespace amso1100
