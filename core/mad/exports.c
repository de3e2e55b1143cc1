// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/export.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

KERN_EXPORT(ib_register_mad_agent);
KERN_EXPORT(ib_query_mad_counters);
KERN_EXPORT(ib_register_mad_snoop);
KERN_EXPORT(ib_unregister_mad_agent);
KERN_EXPORT(ib_create_send_mad);
KERN_EXPORT(ib_free_send_mad);
KERN_EXPORT(ib_post_send_mad);
KERN_EXPORT(ib_modify_mad);
KERN_EXPORT(ib_free_recv_mad);
KERN_EXPORT(ib_get_rmpp_segment);
KERN_EXPORT(ib_response_mad);
KERN_EXPORT(ib_is_mad_class_rmpp);
KERN_EXPORT(ib_get_mad_data_offset);
KERN_EXPORT(ib_mad_kernel_rmpp_agent);
KERN_EXPORT(ib_sa_register_client);
KERN_EXPORT(ib_sa_unregister_client);
KERN_EXPORT(ib_sa_cancel_query);
KERN_EXPORT(ib_sa_path_rec_get);
KERN_EXPORT(ib_sa_service_rec_query);
KERN_EXPORT(ib_sa_class_port_info_query);
KERN_EXPORT(ib_sa_register_inform_info);
KERN_EXPORT(ib_sa_unregister_inform_info);
KERN_EXPORT(ib_sa_join_multicast);
KERN_EXPORT(ib_sa_free_multicast);
KERN_EXPORT(ib_sa_get_mcmember_rec);
KERN_EXPORT(ib_init_ah_from_mcmember);
KERN_EXPORT(ib_init_ah_attr_from_path);
KERN_EXPORT(ib_sa_pack_path);
KERN_EXPORT(ib_sa_unpack_path);
