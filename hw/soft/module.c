// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("A software InfiniBand device for tests", weft_soft_init, weft_soft_exit);
