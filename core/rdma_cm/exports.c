// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/rdma_cm.h>

KERN_EXPORT(__rdma_create_id);
KERN_EXPORT(rdma_destroy_id);
KERN_EXPORT(rdma_lock_handler);
KERN_EXPORT(rdma_unlock_handler);
KERN_EXPORT(rdma_bind_addr);
KERN_EXPORT(rdma_resolve_addr);
KERN_EXPORT(rdma_resolve_route);
KERN_EXPORT(rdma_set_ib_path);
KERN_EXPORT(rdma_create_qp);
KERN_EXPORT(rdma_destroy_qp);
KERN_EXPORT(rdma_init_qp_attr);
KERN_EXPORT(rdma_connect);
KERN_EXPORT(rdma_connect_locked);
KERN_EXPORT(rdma_listen);
KERN_EXPORT(rdma_accept);
KERN_EXPORT(rdma_reject);
KERN_EXPORT(rdma_notify);
KERN_EXPORT(rdma_disconnect);
KERN_EXPORT(rdma_join_multicast);
KERN_EXPORT(rdma_leave_multicast);
KERN_EXPORT(rdma_set_service_type);
KERN_EXPORT(rdma_set_ack_timeout);
KERN_EXPORT(rdma_set_min_rnr_timer);
KERN_EXPORT(rdma_set_reuseaddr);
KERN_EXPORT(rdma_set_afonly);
KERN_EXPORT(rdma_get_service_id);
KERN_EXPORT(rdma_reject_msg);
KERN_EXPORT(rdma_event_msg);
