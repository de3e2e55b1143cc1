// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
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
	 * The interfaces go with the client; the kind, which would take those that are left with
	 * it, after them.
	 */
	ipoib::stop_client();
	ipoib::unregister_link_kind();
	kern::rcu::barrier();
}
