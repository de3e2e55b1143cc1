// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card's Ethernet function, as a network device.
#pragma once
#include <kern/lock.hpp>
#include <kern/netdev.hpp>
#include "register_page.hpp"
#include "rings.hpp"

namespace amso1100
{

/*
 * The stack owns it from create() on; it is destroyed when remove() has returned and the rtnl lock
 * is released. open(), stop() and other functions that change it require the rtnl lock. Packets are
 * sent under lock_, and received by the poll.
 */
class Ethernet : public kern::Napi<Ethernet>
{
public:
	/* Resources of the PCI device; all of them outlive the interface. */
	struct Parts {
		device *dev;
		const kern::Mmio *registers;
		kern::Mmio rings; /* part of BAR 4 that begins with the receive ring */
		const RegisterPage *page;
	};

	/*
	 * Registers an interface. rtnl lock. May sleep. Errors: ENOMEM, and the kernel's of
	 * registering.
	 */
	static kern::Result<Ethernet *> create(Parts parts);
	/*
	 * Closes the interface and removes it from the network stack. Called with the rtnl lock
	 * held. May sleep.
	 */
	void remove();
	/*
	 * There may be something to do. True if it was this function's interrupt, and is silent now
	 * until it was looked after. Hard interrupt.
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
	void take_back_transmits();
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
	bool wakes_ KERN_GUARDED_BY(lock_) = false; /* the queue, when there is room again */
	Outgoing outgoing_[wire::transmit_entries] KERN_GUARDED_BY(lock_) = {};
	Counts in_, out_;
	kern::Atomic<u64> multicast_;
	kern::Atomic<u64> length_errors_;
};

extern const kern_netdev_ops netdev_ops;
/* IEEE 802.3: two addresses, and a type or a length. Soft interrupt. */
int create_header(sk_buff *skb, net_device *dev, unsigned short type, const void *daddr,
		  const void *saddr, unsigned int length);

} // namespace amso1100
