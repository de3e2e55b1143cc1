// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>
#include <rdma/ib_resources.h>

KERN_EXPORT(_ib_alloc_device);
KERN_EXPORT(ib_dealloc_device);
KERN_EXPORT(ib_set_device_ops);
KERN_EXPORT(ib_register_device);
KERN_EXPORT(ib_unregister_device);
KERN_EXPORT(ib_device_try_get);
KERN_EXPORT(ib_device_put);
KERN_EXPORT(ib_device_get_by_name);
KERN_EXPORT(ib_device_get_from);
KERN_EXPORT(ib_device_index);
KERN_EXPORT(ib_set_rename_notifier);
KERN_EXPORT(ib_rename_device);
KERN_EXPORT(ib_copy_device_name);
KERN_EXPORT(ib_devices_are_shared);
KERN_EXPORT(ib_share_devices);
KERN_EXPORT(ib_device_in_net);
KERN_EXPORT(ib_move_device);
KERN_EXPORT(ib_register_client);
KERN_EXPORT(ib_unregister_client);
KERN_EXPORT(ib_set_client_data);
KERN_EXPORT(ib_get_client_data);
KERN_EXPORT(ib_register_event_handler);
KERN_EXPORT(ib_unregister_event_handler);
KERN_EXPORT(ib_dispatch_event);
