// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the network interface to which the RNIC's IP addresses are assigned. It transfers no
 * packets, because the card's own network stack sends and receives them. The connection manager
 * finds the device by the hardware address of this interface. While the interface is up, its IPv4
 * addresses are passed to the card.
 */
#pragma once
#include <kern/abi/ip.h>
#include <kern/netdev.hpp>
#include "rnic.hpp"

namespace amso1100
{

/*
 * The network stack owns it from create() until remove() has returned and the rtnl lock is
 * released.
 */
class RdmaInterface
{
public:
	/* Registers the interface. Errors: ENOMEM, those of registering the device. May sleep. */
	static kern::Result<RdmaInterface *> create(Rnic &rnic);
	/*
	 * Closes the interface, unregisters it, and removes its addresses from the card. May sleep.
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
