// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* In C, so that the checksums of the exported prototypes are true. */
#include <linux/export.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

EXPORT_SYMBOL_GPL(ib_register_mad_agent);
EXPORT_SYMBOL_GPL(ib_query_mad_counters);
EXPORT_SYMBOL_GPL(ib_register_mad_snoop);
EXPORT_SYMBOL_GPL(ib_unregister_mad_agent);
EXPORT_SYMBOL_GPL(ib_create_send_mad);
EXPORT_SYMBOL_GPL(ib_free_send_mad);
EXPORT_SYMBOL_GPL(ib_post_send_mad);
EXPORT_SYMBOL_GPL(ib_modify_mad);
EXPORT_SYMBOL_GPL(ib_free_recv_mad);
EXPORT_SYMBOL_GPL(ib_get_rmpp_segment);
EXPORT_SYMBOL_GPL(ib_response_mad);
EXPORT_SYMBOL_GPL(ib_is_mad_class_rmpp);
EXPORT_SYMBOL_GPL(ib_get_mad_data_offset);
EXPORT_SYMBOL_GPL(ib_mad_kernel_rmpp_agent);
EXPORT_SYMBOL_GPL(ib_sa_register_client);
EXPORT_SYMBOL_GPL(ib_sa_unregister_client);
EXPORT_SYMBOL_GPL(ib_sa_cancel_query);
EXPORT_SYMBOL_GPL(ib_sa_path_rec_get);
EXPORT_SYMBOL_GPL(ib_sa_service_rec_query);
EXPORT_SYMBOL_GPL(ib_sa_class_port_info_query);
EXPORT_SYMBOL_GPL(ib_sa_register_inform_info);
EXPORT_SYMBOL_GPL(ib_sa_unregister_inform_info);
EXPORT_SYMBOL_GPL(ib_sa_join_multicast);
EXPORT_SYMBOL_GPL(ib_sa_free_multicast);
EXPORT_SYMBOL_GPL(ib_sa_get_mcmember_rec);
EXPORT_SYMBOL_GPL(ib_init_ah_from_mcmember);
EXPORT_SYMBOL_GPL(ib_init_ah_attr_from_path);
EXPORT_SYMBOL_GPL(ib_sa_pack_path);
EXPORT_SYMBOL_GPL(ib_sa_unpack_path);
