/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What a device and its ports say of themselves (IBA 11.2.1). */
#pragma once
#include <rdma/verbs/link.h>

enum ib_device_cap_flags {
	IB_DEVICE_RESIZE_MAX_WR = 1 << 0,
	IB_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	IB_DEVICE_BAD_QKEY_CNTR = 1 << 2,
	IB_DEVICE_RAW_MULTI = 1 << 3,
	IB_DEVICE_AUTO_PATH_MIG = 1 << 4,
	IB_DEVICE_CHANGE_PHY_PORT = 1 << 5,
	IB_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
	IB_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
	IB_DEVICE_SHUTDOWN_PORT = 1 << 8,
	IB_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	IB_DEVICE_SYS_IMAGE_GUID = 1 << 11,
	IB_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	IB_DEVICE_SRQ_RESIZE = 1 << 13,
	IB_DEVICE_N_NOTIFY_CQ = 1 << 14,
	IB_DEVICE_MEM_WINDOW = 1 << 17,
	IB_DEVICE_UD_IP_CSUM = 1 << 18,
	IB_DEVICE_XRC = 1 << 20,
	IB_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
	IB_DEVICE_MEM_WINDOW_TYPE_2A = 1 << 23,
	IB_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
	IB_DEVICE_RC_IP_CSUM = 1 << 25,
	IB_DEVICE_RAW_IP_CSUM = 1 << 26,
	IB_DEVICE_MANAGED_FLOW_STEERING = 1 << 29,
};

/* Capabilities that only kernel consumers see. */
enum ib_kernel_cap_flags {
	IBK_LOCAL_DMA_LKEY = 1 << 0,
	IBK_INTEGRITY_HANDOVER = 1 << 1,
	IBK_ON_DEMAND_PAGING = 1 << 2,
	IBK_SG_GAPS_REG = 1 << 3,
	IBK_ALLOW_USER_UNREG = 1 << 4,
	IBK_BLOCK_MULTICAST_LOOPBACK = 1 << 5,
	IBK_UD_TSO = 1 << 6,
	IBK_VIRTUAL_FUNCTION = 1 << 7,
};

enum ib_atomic_cap {
	IB_ATOMIC_NONE,
	IB_ATOMIC_HCA,
	IB_ATOMIC_GLOB,
};

/* Limits of CQ moderation: completions, and microseconds. Zero where the device has none. */
struct ib_cq_caps {
	u16 max_cq_moderation_count;
	u16 max_cq_moderation_period;
};

/**
 * struct ib_device_attr - the limits of a device, constant while it is registered
 *
 * Sizes are counts of objects or entries unless the name says otherwise; @page_size_cap has a bit
 * for each page size in bytes; @local_ca_ack_delay is 4.096 us * 2^n.
 */
struct ib_device_attr {
	u64 fw_ver;
	__be64 sys_image_guid;
	u64 max_mr_size;
	u64 page_size_cap;
	u32 vendor_id;
	u32 vendor_part_id;
	u32 hw_ver;
	int max_qp;
	int max_qp_wr;
	u64 device_cap_flags;
	u64 kernel_cap_flags;
	int max_send_sge;
	int max_recv_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	enum ib_atomic_cap atomic_cap;
	enum ib_atomic_cap masked_atomic_cap;
	int max_mw;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	unsigned int max_fast_reg_page_list_len;
	u16 max_pkeys;
	u8 local_ca_ack_delay;
	struct ib_cq_caps cq_caps;
};

/**
 * struct ib_port_attr - a port as it is now
 *
 * LIDs are in host order; @subnet_prefix too. @port_cap_flags are the capability bits of PortInfo
 * (IBA 14.2.5.6).
 */
struct ib_port_attr {
	u64 subnet_prefix;
	enum ib_port_state state;
	enum ib_mtu max_mtu;
	enum ib_mtu active_mtu;
	int gid_tbl_len;
	u32 port_cap_flags;
	u32 max_msg_sz;
	u32 bad_pkey_cntr;
	u32 qkey_viol_cntr;
	u16 pkey_tbl_len;
	u16 port_cap_flags2;
	u32 sm_lid;
	u32 lid;
	u8 lmc;
	u8 max_vl_num;
	u8 sm_sl;
	u8 subnet_timeout;
	u8 init_type_reply;
	u8 active_width;
	u16 active_speed;
	u8 phys_state;
};

enum { IB_DEVICE_NODE_DESC_MAX = 64, IB_DEVICE_NAME_MAX = 64 };

enum ib_device_modify_flags {
	IB_DEVICE_MODIFY_SYS_IMAGE_GUID = 1 << 0,
	IB_DEVICE_MODIFY_NODE_DESC = 1 << 1,
};

struct ib_device_modify {
	u64 sys_image_guid;
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
};

enum ib_port_modify_flags {
	IB_PORT_SHUTDOWN = 1 << 0,
	IB_PORT_INIT_TYPE = 1 << 2,
	IB_PORT_RESET_QKEY_CNTR = 1 << 3,
};

struct ib_port_modify {
	u32 set_port_cap_mask;
	u32 clr_port_cap_mask;
	u8 init_type;
};

/**
 * struct ib_port_immutable - what never changes about a port
 * @pkey_tbl_len: entries of its P_Key table
 * @gid_tbl_len: entries of its GID table
 * @core_cap_flags: RDMA_CORE_CAP_*
 * @max_mad_size: bytes, 256
 */
struct ib_port_immutable {
	int pkey_tbl_len;
	int gid_tbl_len;
	u32 core_cap_flags;
	u32 max_mad_size;
};
