// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the commands that programs write into /dev/infiniband/uverbsN, version 6 of the
 * interface: their numbers and layouts. All values are in host byte order, unless the comment of a
 * member states otherwise. If a command has a response, the response's address is the first member
 * of the request or, in an extended command, a member of the header. The driver's private data
 * directly follows request and response.
 */
#pragma once
#include <rdma/types.h>
#include <rdma/user_address.hpp>

namespace uverbs::abi
{

inline constexpr const char *version = "6";

/* Fields of the first word of a header. */
inline constexpr u32 extended_flag = 1u << 31;
inline constexpr u32 number_mask = 0xff;

enum Number : u8 {
	get_context = 0,
	query_device = 1,
	query_port = 2,
	alloc_pd = 3,
	dealloc_pd = 4,
	create_ah = 5,
	destroy_ah = 8,
	reg_mr = 9,
	rereg_mr = 11,
	dereg_mr = 13,
	alloc_mw = 14,
	dealloc_mw = 16,
	create_comp_channel = 17,
	create_cq = 18,
	resize_cq = 19,
	destroy_cq = 20,
	create_qp = 24,
	query_qp = 25,
	modify_qp = 26,
	destroy_qp = 27,
	attach_mcast = 30,
	detach_mcast = 31,
	create_srq = 32,
	modify_srq = 33,
	query_srq = 34,
	destroy_srq = 35,
	open_xrcd = 37,
	close_xrcd = 38,
	create_xsrq = 39,
	open_qp = 40,
	modify_cq = 57,
	number_count = 58,
};

struct Header {
	u32 command;
	/*
	 * Sizes of the request and of the response. In a plain header they are in words of 4 bytes
	 * and include this header and the driver's parts. In an extended header they are in words
	 * of 8 bytes and include only the core's parts.
	 */
	u16 in_words;
	u16 out_words;
};
static_assert(sizeof(Header) == 8);

struct ExtendedHeader {
	u64 response;
	u16 driver_in_words;
	u16 driver_out_words;
	u32 reserved;
};
static_assert(sizeof(ExtendedHeader) == 16);

/* The beginning of most requests that have a response. */
struct ResponseOnly {
	u64 response;
};

struct HandleOnly {
	u32 handle;
};

struct ContextResponse {
	u32 async_fd;
	u32 num_comp_vectors;
};

struct DeviceAttributes {
	u64 fw_ver;
	__be64 node_guid;
	__be64 sys_image_guid;
	u64 max_mr_size;
	u64 page_size_cap;
	u32 vendor_id;
	u32 vendor_part_id;
	u32 hw_ver;
	u32 max_qp;
	u32 max_qp_wr;
	u32 device_cap_flags;
	u32 max_sge;
	u32 max_sge_rd;
	u32 max_cq;
	u32 max_cqe;
	u32 max_mr;
	u32 max_pd;
	u32 max_qp_rd_atom;
	u32 max_ee_rd_atom;
	u32 max_res_rd_atom;
	u32 max_qp_init_rd_atom;
	u32 max_ee_init_rd_atom;
	u32 atomic_cap;
	u32 max_ee;
	u32 max_rdd;
	u32 max_mw;
	u32 max_raw_ipv6_qp;
	u32 max_raw_ethy_qp;
	u32 max_mcast_grp;
	u32 max_mcast_qp_attach;
	u32 max_total_mcast_qp_attach;
	u32 max_ah;
	u32 max_fmr;
	u32 max_map_per_fmr;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_srq_sge;
	u16 max_pkeys;
	u8 local_ca_ack_delay;
	u8 phys_port_cnt;
	u8 reserved[4];
};
static_assert(sizeof(DeviceAttributes) == 176 &&
	      __builtin_offsetof(DeviceAttributes, max_pkeys) == 168);

struct QueryDeviceExtended {
	u32 comp_mask;
	u32 reserved;
};

struct DeviceAttributesExtended {
	DeviceAttributes base;
	u32 comp_mask;
	u32 response_length;
	u64 odp_general;
	u32 odp_transports[3];
	u32 odp_reserved;
	u64 timestamp_mask;
	u64 hca_core_clock;
	u64 device_cap_flags;
	u8 rss[16];
	u32 max_wq_type_rq;
	u32 raw_packet_caps;
	u8 tag_matching[24];
	u16 max_cq_moderation_count;
	u16 max_cq_moderation_period;
	u32 cq_moderation_reserved;
	u64 max_dm_size;
	u32 xrc_odp_caps;
	u32 reserved;
};
static_assert(sizeof(DeviceAttributesExtended) == 304 &&
	      __builtin_offsetof(DeviceAttributesExtended, odp_general) == 184 &&
	      __builtin_offsetof(DeviceAttributesExtended, device_cap_flags) == 224 &&
	      __builtin_offsetof(DeviceAttributesExtended, max_cq_moderation_count) == 280);

struct QueryPort {
	u64 response;
	u8 port_num;
	u8 reserved[7];
};

struct PortAttributes {
	u32 port_cap_flags;
	u32 max_msg_sz;
	u32 bad_pkey_cntr;
	u32 qkey_viol_cntr;
	u32 gid_tbl_len;
	u16 pkey_tbl_len;
	u16 lid;
	u16 sm_lid;
	u8 state;
	u8 max_mtu;
	u8 active_mtu;
	u8 lmc;
	u8 max_vl_num;
	u8 sm_sl;
	u8 subnet_timeout;
	u8 init_type_reply;
	u8 active_width;
	u8 active_speed;
	u8 phys_state;
	u8 link_layer;
	u8 flags;
	u8 reserved;
};
static_assert(sizeof(PortAttributes) == 40);

/* An address vector. */
struct QpAddress {
	u8 dgid[16];
	u32 flow_label;
	u16 dlid;
	u16 reserved;
	u8 sgid_index;
	u8 hop_limit;
	u8 traffic_class;
	u8 sl;
	u8 src_path_bits;
	u8 static_rate;
	u8 is_global;
	u8 port_num;
};
static_assert(sizeof(QpAddress) == 32);

using AhAttr = rdma::UserAddress;

struct CreateAh {
	u64 response;
	u64 user_handle;
	u32 pd_handle;
	u32 reserved;
	AhAttr attr;
};
static_assert(sizeof(CreateAh) == 56);

struct RegMr {
	u64 response;
	u64 start;
	u64 length;
	u64 hca_va;
	u32 pd_handle;
	u32 access_flags;
};
static_assert(sizeof(RegMr) == 40);

struct RegMrResponse {
	u32 handle;
	u32 lkey;
	u32 rkey;
};

struct ReregMr {
	u64 response;
	u32 handle;
	u32 flags;
	u64 start;
	u64 length;
	u64 hca_va;
	u32 pd_handle;
	u32 access_flags;
};
static_assert(sizeof(ReregMr) == 48);

struct ReregMrResponse {
	u32 lkey;
	u32 rkey;
};

struct AllocMw {
	u64 response;
	u32 pd_handle;
	u8 type;
	u8 reserved[3];
};
static_assert(sizeof(AllocMw) == 16);

struct AllocMwResponse {
	u32 handle;
	u32 rkey;
};

struct CreateCompChannelResponse {
	u32 fd;
};

struct CreateCq {
	u64 response;
	u64 user_handle;
	u32 cqe;
	u32 comp_vector;
	s32 comp_channel;
	u32 reserved;
};
static_assert(sizeof(CreateCq) == 32);

struct CreateCqResponse {
	u32 handle;
	u32 cqe;
};

/* Flags of CQ creation: time stamps in completions; the CQ may overflow. */
constexpr u64 cq_flags = 1 << 0 | 1 << 1;

struct CreateCqExtended {
	u64 user_handle;
	u32 cqe;
	u32 comp_vector;
	s32 comp_channel;
	u32 comp_mask;
	u32 flags;
	u32 reserved;
};
static_assert(sizeof(CreateCqExtended) == 32);

struct CreateCqExtendedResponse {
	CreateCqResponse base;
	u32 comp_mask;
	u32 response_length;
};

struct ResizeCq {
	u64 response;
	u32 handle;
	u32 cqe;
};
static_assert(sizeof(ResizeCq) == 16);

struct ResizeCqResponse {
	u32 cqe;
	u32 reserved;
};

struct ModifyCq {
	u32 handle;
	u32 attr_mask;
	u16 count;
	u16 period;
	u32 reserved;
};
static_assert(sizeof(ModifyCq) == 16);
/* Bits of attr_mask: moderation by count and period. */
inline constexpr u32 modify_cq_moderation = 1 << 0;

/*
 * Destroys a CQ, QP or SRQ. The response contains the number of events that the program has read.
 */
struct Destroy {
	u64 response;
	u32 handle;
	u32 reserved;
};
static_assert(sizeof(Destroy) == 16);

struct DestroyCqResponse {
	u32 comp_events_reported;
	u32 async_events_reported;
};

struct DestroyResponse {
	u32 events_reported;
};

struct QpCapacity {
	u32 max_send_wr;
	u32 max_recv_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline_data;
};

/* Parameters that both commands for creating a QP have. */
struct QpParameters {
	u64 user_handle;
	/* For an XRC target, the handle of its XRC domain. */
	u32 pd_handle;
	u32 send_cq_handle;
	u32 recv_cq_handle;
	u32 srq_handle;
	QpCapacity cap;
	u8 sq_sig_all;
	u8 qp_type;
	u8 is_srq;
	u8 reserved;
};
static_assert(sizeof(QpParameters) == 48);

struct CreateQp {
	u64 response;
	QpParameters qp;
};
static_assert(sizeof(CreateQp) == 56);

struct CreateQpResponse {
	u32 handle;
	u32 qpn;
	QpCapacity cap;
	u32 reserved;
};
static_assert(sizeof(CreateQpResponse) == 32);

struct CreateQpExtended {
	QpParameters qp;
	u32 comp_mask;
	u32 create_flags;
	u32 rwq_ind_tbl_handle;
	u32 source_qpn;
};
static_assert(sizeof(CreateQpExtended) == 64);
/* Minimum size of the request: without the table of receive queues. */
inline constexpr u16 create_qp_extended_least = 52;

struct CreateQpExtendedResponse {
	CreateQpResponse base;
	u32 comp_mask;
	u32 response_length;
};
static_assert(sizeof(CreateQpExtendedResponse) == 40);

struct QueryQp {
	u64 response;
	u32 handle;
	u32 attr_mask;
};
static_assert(sizeof(QueryQp) == 16);

struct QpAttributes {
	QpAddress dest;
	QpAddress alt_dest;
	QpCapacity cap;
	u32 qkey;
	u32 rq_psn;
	u32 sq_psn;
	u32 dest_qp_num;
	u32 qp_access_flags;
	u16 pkey_index;
	u16 alt_pkey_index;
	u8 qp_state;
	u8 cur_qp_state;
	u8 path_mtu;
	u8 path_mig_state;
	u8 sq_draining;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 min_rnr_timer;
	u8 port_num;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 alt_port_num;
	u8 alt_timeout;
	u8 sq_sig_all;
	u8 reserved[5];
};
static_assert(sizeof(QpAttributes) == 128 && __builtin_offsetof(QpAttributes, pkey_index) == 104 &&
	      __builtin_offsetof(QpAttributes, sq_sig_all) == 122);

struct ModifyQp {
	QpAddress dest;
	QpAddress alt_dest;
	u32 handle;
	u32 attr_mask;
	u32 qkey;
	u32 rq_psn;
	u32 sq_psn;
	u32 dest_qp_num;
	u32 qp_access_flags;
	u16 pkey_index;
	u16 alt_pkey_index;
	u8 qp_state;
	u8 cur_qp_state;
	u8 path_mtu;
	u8 path_mig_state;
	u8 en_sqd_async_notify;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 min_rnr_timer;
	u8 port_num;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 alt_port_num;
	u8 alt_timeout;
	u8 reserved[2];
};
static_assert(sizeof(ModifyQp) == 112 && __builtin_offsetof(ModifyQp, pkey_index) == 92);

struct ModifyQpExtended {
	ModifyQp base;
	u32 rate_limit;
	u32 reserved;
};
static_assert(sizeof(ModifyQpExtended) == 120);

struct ModifyQpExtendedResponse {
	u32 comp_mask;
	u32 response_length;
};

struct Multicast {
	u8 gid[16];
	u32 qp_handle;
	u16 mlid;
	u16 reserved;
};
static_assert(sizeof(Multicast) == 24);

struct CreateSrq {
	u64 response;
	u64 user_handle;
	u32 pd_handle;
	u32 max_wr;
	u32 max_sge;
	u32 srq_limit;
};
static_assert(sizeof(CreateSrq) == 32);

struct CreateSrqResponse {
	u32 handle;
	u32 max_wr;
	u32 max_sge;
	u32 srqn;
};

/*
 * Opens an XRC domain. fd: the program's descriptor of the file through which the domain is shared.
 * Flags: those of open(2).
 */
struct OpenXrcd {
	u64 response;
	s32 fd;
	u32 oflags;
};
static_assert(sizeof(OpenXrcd) == 16);
inline constexpr s32 no_file = -1;
inline constexpr u32 open_creates = 0100;
inline constexpr u32 open_exclusive = 0200;

struct CreateXsrq {
	u64 response;
	u64 user_handle;
	u32 srq_type;
	u32 pd_handle;
	u32 max_wr;
	u32 max_sge;
	u32 srq_limit;
	u32 max_num_tags;
	u32 xrcd_handle;
	u32 cq_handle;
};
static_assert(sizeof(CreateXsrq) == 48);

/* Opens an XRC target QP in the domain with this handle. */
struct OpenQp {
	u64 response;
	u64 user_handle;
	u32 xrcd_handle;
	u32 qpn;
	u8 qp_type;
	u8 reserved[7];
};
static_assert(sizeof(OpenQp) == 32);

struct ModifySrq {
	u32 handle;
	u32 attr_mask;
	u32 max_wr;
	u32 srq_limit;
};

struct QuerySrqResponse {
	u32 max_wr;
	u32 max_sge;
	u32 srq_limit;
	u32 reserved;
};

/* Records that programs read from event files. */
struct CompletionEvent {
	u64 user_handle;
};

struct AsyncEvent {
	u64 element;
	u32 event_type;
	u32 reserved;
};
static_assert(sizeof(AsyncEvent) == 16);

} // namespace uverbs::abi
