// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniBand management datagrams and subnet administration", weft_mad_init,
	    weft_mad_exit);
