// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("iWARP connection management", weft_iw_cm_init, weft_iw_cm_exit);
