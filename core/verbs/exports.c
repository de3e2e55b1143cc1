// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_hw_counters.h>
#include <rdma/ib_port_counters.h>
#include <rdma/ib_resources.h>
#include <rdma/ib_verbs.h>

KERN_EXPORT(__ib_alloc_cq);
KERN_EXPORT(__ib_alloc_cq_any);
KERN_EXPORT(__ib_alloc_mr);
KERN_EXPORT(__ib_alloc_mw);
KERN_EXPORT(__ib_alloc_pd);
KERN_EXPORT(__ib_alloc_ucontext);
KERN_EXPORT(__ib_alloc_xrcd);
KERN_EXPORT(ib_attach_mcast);
KERN_EXPORT(ib_attach_mcast_for_user);
KERN_EXPORT(ib_check_mr_access);
KERN_EXPORT(ib_check_udata_tail);
KERN_EXPORT(ib_close_qp);
KERN_EXPORT(ib_copy_from_udata);
KERN_EXPORT(ib_copy_to_udata);
KERN_EXPORT(__ib_create_ah_from_wc);
KERN_EXPORT(__ib_create_cq);
KERN_EXPORT(__ib_create_qp);
KERN_EXPORT(__ib_create_srq);
KERN_EXPORT(ib_count_resources);
KERN_EXPORT(ib_dealloc_mw);
KERN_EXPORT(ib_dealloc_pd);
KERN_EXPORT(ib_dealloc_pd_user);
KERN_EXPORT(ib_dealloc_ucontext);
KERN_EXPORT(ib_dealloc_xrcd);
KERN_EXPORT(ib_dereg_mr);
KERN_EXPORT(ib_destroy_cq);
KERN_EXPORT(ib_destroy_cq_user);
KERN_EXPORT(ib_destroy_qp);
KERN_EXPORT(ib_destroy_srq);
KERN_EXPORT(ib_destroy_srq_user);
KERN_EXPORT(ib_detach_mcast);
KERN_EXPORT(ib_drain_qp);
KERN_EXPORT(ib_drain_rq);
KERN_EXPORT(ib_drain_sq);
KERN_EXPORT(ib_event_msg);
KERN_EXPORT(ib_find_cached_gid);
KERN_EXPORT(ib_find_cached_gid_by_port);
KERN_EXPORT(ib_find_cached_pkey);
KERN_EXPORT(ib_find_exact_cached_pkey);
KERN_EXPORT(ib_find_gid);
KERN_EXPORT(ib_find_node);
KERN_EXPORT(ib_find_pkey);
KERN_EXPORT(ib_free_cq);
KERN_EXPORT(ib_get_cached_lid);
KERN_EXPORT(ib_get_cached_lmc);
KERN_EXPORT(ib_get_cached_pkey);
KERN_EXPORT(ib_get_cached_port);
KERN_EXPORT(ib_get_cached_port_state);
KERN_EXPORT(ib_get_cached_sm_lid);
KERN_EXPORT(ib_get_cached_subnet_prefix);
KERN_EXPORT(ib_get_device_fw_str);
KERN_EXPORT(ib_get_hw_stats);
KERN_EXPORT(ib_get_hw_stats_lifespan);
KERN_EXPORT(ib_hw_counters);
KERN_EXPORT(__ib_get_dma_mr);
KERN_EXPORT(ib_init_ah_attr_from_wc);
KERN_EXPORT(ib_map_mr_sg);
KERN_EXPORT(ib_mmap_ucontext);
KERN_EXPORT(ib_modify_device);
KERN_EXPORT(ib_modify_port);
KERN_EXPORT(ib_modify_qp);
KERN_EXPORT(ib_modify_qp_is_ok);
KERN_EXPORT(ib_modify_qp_user);
KERN_EXPORT(ib_modify_srq);
KERN_EXPORT(ib_modify_srq_user);
KERN_EXPORT(ib_find_qp_resource);
KERN_EXPORT(ib_next_resource);
KERN_EXPORT(__ib_open_qp);
KERN_EXPORT(ib_process_cq_direct);
KERN_EXPORT(ib_publish_node);
KERN_EXPORT(ib_process_has_qp);
KERN_EXPORT(ib_hold_qp);
KERN_EXPORT(ib_release_qp);
KERN_EXPORT(ib_query_device_user);
KERN_EXPORT(ib_query_pkey);
KERN_EXPORT(ib_query_port);
KERN_EXPORT(ib_query_qp);
KERN_EXPORT(ib_query_srq);
KERN_EXPORT(ib_rate_to_mbps);
KERN_EXPORT(ib_rate_to_mult);
KERN_EXPORT(__ib_reg_user_mr);
KERN_EXPORT(ib_rereg_user_mr);
KERN_EXPORT(ib_resize_cq);
KERN_EXPORT(ib_resize_cq_user);
KERN_EXPORT(ib_set_hw_stats_lifespan);
KERN_EXPORT(ib_set_port_counters);
KERN_EXPORT(ib_set_port_counters_notifier);
KERN_EXPORT(ib_set_resource_source);
KERN_EXPORT(ib_sg_to_pages);
KERN_EXPORT(ib_wc_status_msg);
KERN_EXPORT(ib_withdraw_node);
KERN_EXPORT(mult_to_ib_rate);
KERN_EXPORT(__rdma_create_ah);
KERN_EXPORT(rdma_destroy_ah);
KERN_EXPORT(rdma_modify_ah);
KERN_EXPORT(rdma_port_get_link_layer);
KERN_EXPORT(rdma_query_ah);
KERN_EXPORT(rdma_query_gid);
KERN_EXPORT(rdma_set_cq_moderation);

#ifdef CONFIG_WEFT_DEBUG
KERN_EXPORT(ib_checked_poll_cq);
KERN_EXPORT(ib_checked_post_recv);
KERN_EXPORT(ib_checked_post_send);
KERN_EXPORT(ib_checked_post_srq_recv);
KERN_EXPORT(ib_checked_process_mad);
KERN_EXPORT(ib_checked_req_notify_cq);

void ib_set_misuse_observer(void (*observer)(int rule, const char *who, const char *what));
KERN_EXPORT(ib_set_misuse_observer);
#endif
