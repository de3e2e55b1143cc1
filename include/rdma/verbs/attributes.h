/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines attributes of devices and ports (IBA 11.2.1). */
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

/**
 * struct ib_cq_caps - limits of the moderation of completion events
 * @max_cq_moderation_count: maximum number of completions for which an event may wait; 0 without
 * moderation
 * @max_cq_moderation_period: maximum number of microseconds that it may wait; 0 without moderation
 */
struct ib_cq_caps {
	u16 max_cq_moderation_count;
	u16 max_cq_moderation_period;
};

/**
 * struct ib_device_attr - the limits of a device (IBA 11.2.1)
 * @fw_ver: firmware version, in the vendor's format
 * @sys_image_guid: GUID of the system image (IBA 14.2.5.3)
 * @max_mr_size: bytes of the largest memory region
 * @page_size_cap: sizes of pages in bytes, all powers of two, or-ed
 * @vendor_id: the vendor's OUI
 * @vendor_part_id: the vendor's number for the device
 * @hw_ver: hardware revision
 * @max_qp: number of QPs
 * @max_qp_wr: requests in a send or a receive queue
 * @device_cap_flags: enum ib_device_cap_flags
 * @kernel_cap_flags: enum ib_kernel_cap_flags
 * @max_send_sge: segments of a send request
 * @max_recv_sge: segments of a receive request
 * @max_sge_rd: segments of an RDMA read request
 * @max_cq: number of CQs
 * @max_cqe: completions in a CQ
 * @max_mr: number of memory regions
 * @max_pd: number of PDs
 * @max_qp_rd_atom: RDMA reads and atomics outstanding at a QP as the responder
 * @max_res_rd_atom: the same for the whole device
 * @max_qp_init_rd_atom: RDMA reads and atomics outstanding at a QP as the initiator
 * @atomic_cap: enum ib_atomic_cap: whether atomics are atomic within the device, or with all
 * accesses to memory
 * @masked_atomic_cap: the same for masked atomics
 * @max_mw: number of memory windows
 * @max_mcast_grp: number of multicast groups
 * @max_mcast_qp_attach: QPs attached to one group
 * @max_total_mcast_qp_attach: attachments of QPs to groups
 * @max_ah: number of address handles
 * @max_srq: number of SRQs
 * @max_srq_wr: requests in an SRQ
 * @max_srq_sge: segments of a request in an SRQ
 * @max_fast_reg_page_list_len: pages of a fast-registration region
 * @max_pkeys: number of partitions
 * @local_ca_ack_delay: longest time until the device sends an ACK, 4.096 us * 2^n
 * @cq_caps: limits of the moderation of completion events
 *
 * Constant while the device is registered. All but bit masks, sizes in bytes and versions are
 * numbers of objects or entries.
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
 * struct ib_port_attr - the present attributes of a port (IBA 11.2.1, 14.2.5.6)
 * @subnet_prefix: upper half of the port's GIDs, host order
 * @state: logical state
 * @max_mtu: largest MTU that the port can have
 * @active_mtu: MTU of the link
 * @gid_tbl_len: entries of the GID table
 * @port_cap_flags: enum ib_port_capability_mask_bits: CapabilityMask of PortInfo
 * @max_msg_sz: bytes of the largest message
 * @bad_pkey_cntr: packets that arrived with a bad P_Key
 * @qkey_viol_cntr: packets that arrived with a bad Q_Key
 * @pkey_tbl_len: entries of the P_Key table
 * @port_cap_flags2: CapabilityMask2 of PortInfo
 * @sm_lid: LID of the subnet manager, host order; 0 if unknown
 * @lid: base LID, host order; 0 if the port has none
 * @lmc: number of low bits of LIDs that select a path, 0 to 7
 * @max_vl_num: virtual lanes, as PortInfo encodes them in VLCap
 * @sm_sl: service level for packets to the subnet manager, 0 to 15
 * @subnet_timeout: longest time that a packet takes through the subnet, 4.096 us * 2^n
 * @init_type_reply: InitTypeReply of PortInfo
 * @active_width: enum ib_port_width
 * @active_speed: enum ib_port_speed
 * @phys_state: enum ib_port_phys_state
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

/**
 * struct ib_device_modify - values for ib_modify_device()
 * @sys_image_guid: GUID of the system image, host order; with IB_DEVICE_MODIFY_SYS_IMAGE_GUID
 * @node_desc: description for people, need not end in 0; with IB_DEVICE_MODIFY_NODE_DESC
 */
struct ib_device_modify {
	u64 sys_image_guid;
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
};

enum ib_port_modify_flags {
	IB_PORT_SHUTDOWN = 1 << 0,
	IB_PORT_INIT_TYPE = 1 << 2,
	IB_PORT_RESET_QKEY_CNTR = 1 << 3,
};

/**
 * struct ib_port_modify - values for ib_modify_port()
 * @set_port_cap_mask: enum ib_port_capability_mask_bits: capabilities to set
 * @clr_port_cap_mask: capabilities to clear
 * @init_type: InitType of PortInfo (IBA 14.2.5.6); with IB_PORT_INIT_TYPE
 */
struct ib_port_modify {
	u32 set_port_cap_mask;
	u32 clr_port_cap_mask;
	u8 init_type;
};

/**
 * struct ib_port_immutable - properties of a port that never change
 * @pkey_tbl_len: entries of its P_Key table, at most 65,535; on InfiniBand at least 1
 * @gid_tbl_len: entries of its GID table, at most 65,535; on InfiniBand at least 1
 * @core_cap_flags: RDMA_CORE_CAP_*, of exactly one protocol
 * @max_mad_size: bytes of the largest MAD: 256 on InfiniBand, 0 on iWARP
 */
struct ib_port_immutable {
	int pkey_tbl_len;
	int gid_tbl_len;
	u32 core_cap_flags;
	u32 max_mad_size;
};
