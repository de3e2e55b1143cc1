// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("RDMA devices for the tool rdma and for libraries, by netlink", weft_netlink_init,
	    weft_netlink_exit);
