// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <linux/export.h>
#include <rdma/ib_verbs.h>

EXPORT_SYMBOL_GPL(_ib_alloc_device);
EXPORT_SYMBOL_GPL(ib_dealloc_device);
EXPORT_SYMBOL_GPL(ib_set_device_ops);
EXPORT_SYMBOL_GPL(ib_register_device);
EXPORT_SYMBOL_GPL(ib_unregister_device);
EXPORT_SYMBOL_GPL(ib_device_try_get);
EXPORT_SYMBOL_GPL(ib_device_put);
EXPORT_SYMBOL_GPL(ib_device_get_by_name);
EXPORT_SYMBOL_GPL(ib_register_client);
EXPORT_SYMBOL_GPL(ib_unregister_client);
EXPORT_SYMBOL_GPL(ib_set_client_data);
EXPORT_SYMBOL_GPL(ib_get_client_data);
EXPORT_SYMBOL_GPL(ib_register_event_handler);
EXPORT_SYMBOL_GPL(ib_unregister_event_handler);
EXPORT_SYMBOL_GPL(ib_dispatch_event);
