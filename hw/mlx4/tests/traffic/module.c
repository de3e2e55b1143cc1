// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("RDMA traffic for tests, by the verbs alone", weft_traffic_init, weft_traffic_exit);
