// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers IPoIB as a kind of rtnetlink interface and as a client of the midlayer when the module
// is loaded, and unregisters both when the module is unloaded.
#include "client.hpp"
#include "interface.hpp"

#include <kern/rcu.hpp>

extern "C" int weft_ipoib_init()
{
	if (auto registered = ipoib::register_link_kind(); !registered.ok())
		return registered.error();
	if (auto started = ipoib::start_client(); !started.ok()) {
		ipoib::unregister_link_kind();
		return started.error();
	}
	return 0;
}

extern "C" void weft_ipoib_exit()
{
	/*
	 * Unregistering the client removes the interfaces. The rtnetlink kind is unregistered
	 * afterwards, because that would delete interfaces that still exist.
	 */
	ipoib::stop_client();
	ipoib::unregister_link_kind();
	kern::rcu::barrier();
}
