// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniBand verbs for programs", weft_uverbs_init, weft_uverbs_exit);
KERN_MODULE_STAYS(weft_uverbs_stay);
