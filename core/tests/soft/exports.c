// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <linux/export.h>
#include "soft.h"

EXPORT_SYMBOL_GPL(soft_create);
EXPORT_SYMBOL_GPL(soft_destroy);
EXPORT_SYMBOL_GPL(soft_set_port);
EXPORT_SYMBOL_GPL(soft_set_gid);
EXPORT_SYMBOL_GPL(soft_set_pkey);
EXPORT_SYMBOL_GPL(soft_connect);
EXPORT_SYMBOL_GPL(soft_fail);
EXPORT_SYMBOL_GPL(soft_interpose);
EXPORT_SYMBOL_GPL(soft_calls);
EXPORT_SYMBOL_GPL(soft_disturb);
EXPORT_SYMBOL_GPL(soft_watch);
EXPORT_SYMBOL_GPL(soft_complete);
EXPORT_SYMBOL_GPL(soft_looks);
EXPORT_SYMBOL_GPL(soft_events);
