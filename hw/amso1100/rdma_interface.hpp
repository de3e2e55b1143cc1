// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The interface that the RNIC's addresses belong to. It carries no packets: the card's own stack
 * sends and receives them. The device is found by its hardware address, and the card is given its
 * IPv4 addresses while it is up.
 */
#pragma once
#include <kern/abi/ip.h>
#include <kern/netdev.hpp>
#include "rnic.hpp"

namespace amso1100
{

/*
 * The network stack owns it from create() on, until remove() and the rtnl lock's end have returned.
 */
class RdmaInterface
{
public:
	/* Registers an interface. May sleep. Errors: ENOMEM, and the kernel's of registering. */
	static kern::Result<RdmaInterface *> create(Rnic &rnic);
	/*
	 * Closes the interface and removes it from the network stack, and its addresses from the
	 * card. May sleep.
	 */
	void remove();

	explicit RdmaInterface(Rnic &rnic) : rnic_(rnic) {}

private:
	friend struct RdmaNetdevOps;

	void change(u32 address, u32 mask, bool added);

	Rnic &rnic_;
	net_device *dev_ = nullptr;
	kern_ip_address_watcher *watcher_ = nullptr;
	bool up_ = false; /* protected by the rtnl lock */
};

} // namespace amso1100
