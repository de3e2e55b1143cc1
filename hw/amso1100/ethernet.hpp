// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's Ethernet function as a network device.
#pragma once
#include <kern/lock.hpp>
#include <kern/netdev.hpp>
#include "register_page.hpp"
#include "rings.hpp"

namespace amso1100
{

/*
 * The network stack owns it from create() on. It is destroyed when remove() has returned and the
 * rtnl lock is released. open(), stop() and other functions that change its state require the rtnl
 * lock. Frames are sent with lock_ held, and received in the NAPI poll.
 */
class Ethernet : public kern::Napi<Ethernet>
{
public:
	/* Resources of the PCI device, which outlive the interface. */
	struct Parts {
		device *dev;
		const kern::Mmio *registers;
		kern::Mmio rings; /* part of BAR 4 that begins with the receive ring */
		const RegisterPage *page;
	};

	/*
	 * Registers the interface. Context: rtnl lock held; may sleep. Errors: ENOMEM, those of
	 * registering the device.
	 */
	static kern::Result<Ethernet *> create(Parts parts);
	/* Closes the interface, and unregisters it. Context: rtnl lock held; may sleep. */
	void remove();
	/*
	 * Returns true if this function has raised the interrupt, which it then masks until the
	 * poll has handled it. Context: hard interrupt.
	 */
	bool interrupt();

	int poll(int budget);

	explicit Ethernet(Parts parts);

private:
	friend struct NetdevOps;
	template<class T>
	friend kern::Result<kern::Owned<T>> kern::adopt(T *);

	enum class State : u8 { down, up };
	struct Outgoing {
		sk_buff *skb;
		kern_tx_piece piece;
	};
	struct Counts {
		kern::Atomic<u64> packets, bytes, errors, dropped;
	};

	int open();
	void stop();
	kern::Result<> start();
	int start_xmit(sk_buff *skb);
	void tx_timeout();
	void get_stats(kern_net_stats &stats) const;

	void reap(int budget);
	void reclaim_transmits();
	void finish(u32 slot, int budget) KERN_REQUIRES(lock_);
	int receive(int budget);
	void pass_up(const u8 *bytes, u32 length);
	void mask() const { registers_.write32(wire::reg::nimr0, ~u32{0}); }
	void unmask() const
	{
		registers_.write32(wire::reg::nimr0, ~(wire::nisr_receive | wire::nisr_transmit));
	}

	device *const dma_device_;
	const kern::Mmio &registers_;
	u8 address_[6];
	net_device *dev_ = nullptr;
	State state_ = State::down; /* protected by the rtnl lock */
	ReceiveRing receives_;
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("weft_amso1100_transmit")};
	TransmitRing transmits_ KERN_GUARDED_BY(lock_);
	/* reap() may wake the netdev queue when the ring has space */
	bool may_wake_ KERN_GUARDED_BY(lock_) = false;
	Outgoing outgoing_[wire::transmit_entries] KERN_GUARDED_BY(lock_) = {};
	Counts in_, out_;
	kern::Atomic<u64> multicast_;
	kern::Atomic<u64> length_errors_;
};

extern const kern_netdev_ops netdev_ops;
/*
 * Writes an Ethernet header: two addresses, and a type or a length (IEEE 802.3). Context: softirq.
 */
int create_header(sk_buff *skb, net_device *dev, unsigned short type, const void *daddr,
		  const void *saddr, unsigned int length);

} // namespace amso1100
