// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the network namespaces of include/kern/abi/net.h. Only the initial namespace exists.
#include <kern/abi/net.h>

extern "C" {

u64 kern_net_number_of_caller(void)
{
	return KERN_NET_INITIAL;
}

int kern_net_watch(const struct kern_net_watcher *)
{
	return 0;
}

void kern_net_unwatch(void) {}
}
