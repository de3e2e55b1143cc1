// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/ib_sysfs.h>

KERN_EXPORT(ib_sysfs_shows);
