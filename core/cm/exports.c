// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/ib_cm.h>

KERN_EXPORT(ib_create_cm_id);
KERN_EXPORT(ib_destroy_cm_id);
KERN_EXPORT(ib_cm_listen);
KERN_EXPORT(ib_cm_set_backlog);
KERN_EXPORT(ib_send_cm_req);
KERN_EXPORT(ib_send_cm_rep);
KERN_EXPORT(ib_send_cm_rtu);
KERN_EXPORT(ib_send_cm_dreq);
KERN_EXPORT(ib_send_cm_drep);
KERN_EXPORT(ib_send_cm_rej);
KERN_EXPORT(ib_send_cm_mra);
KERN_EXPORT(ib_send_cm_lap);
KERN_EXPORT(ib_send_cm_apr);
KERN_EXPORT(ib_send_cm_sidr_req);
KERN_EXPORT(ib_send_cm_sidr_rep);
KERN_EXPORT(ib_cm_notify);
KERN_EXPORT(ib_cm_init_qp_attr);
KERN_EXPORT(ib_end_cm_id);
KERN_EXPORT(ib_cm_query_state);
KERN_EXPORT(ib_cm_query_counters);
KERN_EXPORT(ibcm_reject_msg);
