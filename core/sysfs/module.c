// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniBand devices in /sys/class/infiniband", weft_sysfs_init, weft_sysfs_exit);
