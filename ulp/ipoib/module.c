// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("IP over InfiniBand", weft_ipoib_init, weft_ipoib_exit);
KERN_MODULE_ALIAS("rtnl-link-ipoib");
