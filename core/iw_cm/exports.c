// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/iw_cm.h>

KERN_EXPORT(iw_cm_add_device);
KERN_EXPORT(iw_cm_remove_device);
KERN_EXPORT(iw_create_cm_id);
KERN_EXPORT(iw_destroy_cm_id);
KERN_EXPORT(iw_cm_listen);
KERN_EXPORT(iw_cm_stop_listening);
KERN_EXPORT(iw_cm_connect);
KERN_EXPORT(iw_cm_accept);
KERN_EXPORT(iw_cm_reject);
KERN_EXPORT(iw_cm_disconnect);
