// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("RDMA connections by IP address", weft_rdma_cm_init, weft_rdma_cm_exit);
