// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the table of netlink requests when the module is loaded, and unregisters it when the
// module is unloaded.
#include <kern/log.hpp>
#include "abi.hpp"
#include "operations.hpp"

extern "C" struct module __this_module;

/*
 * Registers the netlink operations. This must be the last step, because requests may arrive
 * immediately.
 */
extern "C" int weft_netlink_init()
{
	const int status =
		kern_netlink_create(nldev::abi::protocol, &nldev::operations, &__this_module);

	if (status == -EBUSY)
		kern_error(
			"the netlink protocol of RDMA is someone else's: is the kernel's own ib_core loaded?\n");
	return status;
}

extern "C" void weft_netlink_exit()
{
	kern_netlink_destroy();
}
