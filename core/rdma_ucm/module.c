// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniBand connections for programs", weft_rdma_ucm_init, weft_rdma_ucm_exit);
