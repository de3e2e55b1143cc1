// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* In C, with the public headers in sight, so that the symbols' versions are those of the prototypes. */
#include <linux/export.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

EXPORT_SYMBOL_GPL(__ib_alloc_cq);
EXPORT_SYMBOL_GPL(__ib_alloc_cq_any);
EXPORT_SYMBOL_GPL(__ib_alloc_mr);
EXPORT_SYMBOL_GPL(__ib_alloc_mw);
EXPORT_SYMBOL_GPL(__ib_alloc_pd);
EXPORT_SYMBOL_GPL(__ib_alloc_xrcd);
EXPORT_SYMBOL_GPL(ib_attach_mcast);
EXPORT_SYMBOL_GPL(ib_check_mr_access);
EXPORT_SYMBOL_GPL(ib_close_qp);
EXPORT_SYMBOL_GPL(__ib_create_ah_from_wc);
EXPORT_SYMBOL_GPL(__ib_create_cq);
EXPORT_SYMBOL_GPL(__ib_create_qp);
EXPORT_SYMBOL_GPL(__ib_create_srq);
EXPORT_SYMBOL_GPL(ib_dealloc_mw);
EXPORT_SYMBOL_GPL(ib_dealloc_pd);
EXPORT_SYMBOL_GPL(ib_dealloc_xrcd);
EXPORT_SYMBOL_GPL(ib_dereg_mr);
EXPORT_SYMBOL_GPL(ib_destroy_cq);
EXPORT_SYMBOL_GPL(ib_destroy_qp);
EXPORT_SYMBOL_GPL(ib_destroy_srq);
EXPORT_SYMBOL_GPL(ib_detach_mcast);
EXPORT_SYMBOL_GPL(ib_drain_qp);
EXPORT_SYMBOL_GPL(ib_drain_rq);
EXPORT_SYMBOL_GPL(ib_drain_sq);
EXPORT_SYMBOL_GPL(ib_event_msg);
EXPORT_SYMBOL_GPL(ib_find_cached_gid);
EXPORT_SYMBOL_GPL(ib_find_cached_gid_by_port);
EXPORT_SYMBOL_GPL(ib_find_cached_pkey);
EXPORT_SYMBOL_GPL(ib_find_exact_cached_pkey);
EXPORT_SYMBOL_GPL(ib_find_gid);
EXPORT_SYMBOL_GPL(ib_find_pkey);
EXPORT_SYMBOL_GPL(ib_free_cq);
EXPORT_SYMBOL_GPL(ib_get_cached_lid);
EXPORT_SYMBOL_GPL(ib_get_cached_lmc);
EXPORT_SYMBOL_GPL(ib_get_cached_pkey);
EXPORT_SYMBOL_GPL(ib_get_cached_port);
EXPORT_SYMBOL_GPL(ib_get_cached_port_state);
EXPORT_SYMBOL_GPL(ib_get_cached_sm_lid);
EXPORT_SYMBOL_GPL(ib_get_cached_subnet_prefix);
EXPORT_SYMBOL_GPL(ib_get_device_fw_str);
EXPORT_SYMBOL_GPL(__ib_get_dma_mr);
EXPORT_SYMBOL_GPL(ib_init_ah_attr_from_wc);
EXPORT_SYMBOL_GPL(ib_map_mr_sg);
EXPORT_SYMBOL_GPL(ib_modify_device);
EXPORT_SYMBOL_GPL(ib_modify_port);
EXPORT_SYMBOL_GPL(ib_modify_qp);
EXPORT_SYMBOL_GPL(ib_modify_qp_is_ok);
EXPORT_SYMBOL_GPL(ib_modify_srq);
EXPORT_SYMBOL_GPL(__ib_open_qp);
EXPORT_SYMBOL_GPL(ib_process_cq_direct);
EXPORT_SYMBOL_GPL(ib_query_pkey);
EXPORT_SYMBOL_GPL(ib_query_port);
EXPORT_SYMBOL_GPL(ib_query_qp);
EXPORT_SYMBOL_GPL(ib_query_srq);
EXPORT_SYMBOL_GPL(ib_rate_to_mbps);
EXPORT_SYMBOL_GPL(ib_rate_to_mult);
EXPORT_SYMBOL_GPL(__ib_reg_user_mr);
EXPORT_SYMBOL_GPL(ib_resize_cq);
EXPORT_SYMBOL_GPL(ib_sg_to_pages);
EXPORT_SYMBOL_GPL(ib_wc_status_msg);
EXPORT_SYMBOL_GPL(mult_to_ib_rate);
EXPORT_SYMBOL_GPL(__rdma_create_ah);
EXPORT_SYMBOL_GPL(rdma_destroy_ah);
EXPORT_SYMBOL_GPL(rdma_modify_ah);
EXPORT_SYMBOL_GPL(rdma_port_get_link_layer);
EXPORT_SYMBOL_GPL(rdma_query_ah);
EXPORT_SYMBOL_GPL(rdma_query_gid);
EXPORT_SYMBOL_GPL(rdma_set_cq_moderation);

#ifdef CONFIG_WEFT_DEBUG
EXPORT_SYMBOL_GPL(ib_checked_poll_cq);
EXPORT_SYMBOL_GPL(ib_checked_post_recv);
EXPORT_SYMBOL_GPL(ib_checked_post_send);
EXPORT_SYMBOL_GPL(ib_checked_post_srq_recv);
EXPORT_SYMBOL_GPL(ib_checked_req_notify_cq);

void ib_set_misuse_observer(void (*observer)(int rule, const char *who, const char *what));
EXPORT_SYMBOL_GPL(ib_set_misuse_observer);
#endif
