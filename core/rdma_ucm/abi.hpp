// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the commands that programs write into /dev/infiniband/rdma_cm, version 4 of the
 * interface: their numbers and layouts. All values are in host byte order, unless the comment of a
 * member states otherwise. The member `response` of a request is the user address to which the
 * response is written.
 */
#pragma once
#include <rdma/types.h>
#include <rdma/user_address.hpp>

namespace rdma_ucm::abi
{

/* Contents of the node's file abi_version. */
inline constexpr const char *version = "4";
inline constexpr unsigned int version_as_number = 4;

enum Number : u8 {
	create_id = 0,
	destroy_id = 1,
	bind_ip = 2,
	resolve_ip = 3,
	resolve_route = 4,
	query_route = 5,
	connect = 6,
	listen = 7,
	accept = 8,
	reject = 9,
	disconnect = 10,
	init_qp_attr = 11,
	get_event = 12,
	/* 13 is not used. */
	set_option = 14,
	notify = 15,
	join_ip_mcast = 16,
	leave_mcast = 17,
	migrate_id = 18,
	query = 19,
	bind = 20,
	resolve_addr = 21,
	join_mcast = 22,
	number_count = 23,
};

struct Header {
	u32 command;
	/* Sizes of the request without this header, and of the response buffer. */
	u16 in;
	u16 out;
};
static_assert(sizeof(Header) == 8);

/*
 * Ip: struct sockaddr_in6, or a shorter address at its beginning. Storage: struct sockaddr_storage.
 */
using Ip = u8[28];
using Storage = u8[128];

/* The response of commands that create an object: its number. */
struct Made {
	u32 id;
};
/* The response of commands that destroy an object: how many of its events the program has read. */
struct Ended {
	u32 events_reported;
};

struct CreateId {
	u64 uid;
	u64 response;
	u16 ps;
	u8 qp_type;
	u8 reserved[5];
};
static_assert(sizeof(CreateId) == 24);

struct DestroyId {
	u64 response;
	u32 id;
	u32 reserved;
};
static_assert(sizeof(DestroyId) == 16);

struct BindIp {
	u64 response;
	Ip addr;
	u32 id;
};
static_assert(sizeof(BindIp) == 40);

struct Bind {
	u32 id;
	u16 addr_size;
	u16 reserved;
	Storage addr;
};
static_assert(sizeof(Bind) == 136);

struct ResolveIp {
	Ip src_addr;
	Ip dst_addr;
	u32 id;
	u32 timeout_ms;
};
static_assert(sizeof(ResolveIp) == 64);

struct ResolveAddr {
	u32 id;
	u32 timeout_ms;
	u16 src_size;
	u16 dst_size;
	u32 reserved;
	Storage src_addr;
	Storage dst_addr;
};
static_assert(sizeof(ResolveAddr) == 272);

struct ResolveRoute {
	u32 id;
	u32 timeout_ms;
};

/* INIT_QP_ATTR, QUERY_ROUTE and QUERY. `what` is the next QP state, unused, or a value of Query. */
struct Ask {
	u64 response;
	u32 id;
	u32 what;
};
static_assert(sizeof(Ask) == 16);

enum Query : u32 {
	query_address = 0,
	query_path = 1,
	query_gid = 2,
};

struct PathRecord {
	u8 dgid[16];
	u8 sgid[16];
	__be16 dlid;
	__be16 slid;
	u32 raw_traffic;
	__be32 flow_label;
	u32 reversible;
	u32 mtu;
	__be16 pkey;
	u8 hop_limit;
	u8 traffic_class;
	u8 numb_path;
	u8 sl;
	u8 mtu_selector;
	u8 rate_selector;
	u8 rate;
	u8 packet_life_time_selector;
	u8 packet_life_time;
	u8 preference;
};
static_assert(sizeof(PathRecord) == 64 && __builtin_offsetof(PathRecord, pkey) == 52);

/*
 * The interface has the index of the device at the end, by which programs find the device with RDMA
 * netlink. It is omitted here, so programs use the GUID.
 */
struct Route {
	__be64 node_guid;
	PathRecord path[2];
	Ip src_addr;
	Ip dst_addr;
	u32 num_paths;
	u8 port_num;
	u8 reserved[3];
};
static_assert(sizeof(Route) == 200);

/* Begins like Route. */
struct Addresses {
	__be64 node_guid;
	u8 port_num;
	u8 reserved;
	__be16 pkey;
	u16 src_size;
	u16 dst_size;
	Storage src_addr;
	Storage dst_addr;
};
static_assert(sizeof(Addresses) == 272);

/* Flags for the use of a path. */
inline constexpr u32 path_gmp = 1, path_primary = 2, path_bidirectional = 40;
inline constexpr u32 path_all = path_gmp | path_primary | path_bidirectional;

struct PathData {
	u32 flags;
	u32 reserved;
	u8 record[64]; // in wire format (IBA 15.2.5.16)
};
static_assert(sizeof(PathData) == 72);

struct Paths {
	u32 num_paths;
	u32 reserved;
	PathData path;
};
/* Minimum size of the response buffer: without paths. */
inline constexpr u16 paths_least = 8;
static_assert(sizeof(Paths) == 80);

inline constexpr size_t private_data_max = 256;

struct ConnParam {
	u32 qp_num;
	u32 qkey;
	u8 private_data[private_data_max];
	u8 private_data_len;
	u8 srq;
	u8 responder_resources;
	u8 initiator_depth;
	u8 flow_control;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 valid;
};
static_assert(sizeof(ConnParam) == 272);

/*
 * Enhanced connection establishment. The program's values are ignored, and the peer's values are
 * zero.
 */
struct Ece {
	u32 vendor_id;
	u32 attr_mod;
};

struct Connect {
	ConnParam conn_param;
	u32 id;
	u32 reserved;
	Ece ece;
};
static_assert(sizeof(Connect) == 288);
inline constexpr u16 connect_least = 280;

struct Listen {
	u32 id;
	s32 backlog;
};

struct Accept {
	u64 uid;
	ConnParam conn_param;
	u32 id;
	u32 reserved;
	Ece ece;
};
static_assert(sizeof(Accept) == 296);
inline constexpr u16 accept_least = 288;

struct Reject {
	u32 id;
	u8 private_data_len;
	u8 reason;
	u8 reserved[2];
	u8 private_data[private_data_max];
};
static_assert(sizeof(Reject) == 264);

struct Disconnect {
	u32 id;
};

using AhAttr = rdma::UserAddress;

struct QpAttr {
	u32 qp_attr_mask;
	u32 qp_state;
	u32 cur_qp_state;
	u32 path_mtu;
	u32 path_mig_state;
	u32 qkey;
	u32 rq_psn;
	u32 sq_psn;
	u32 dest_qp_num;
	u32 qp_access_flags;
	AhAttr ah_attr;
	AhAttr alt_ah_attr;
	u32 max_send_wr;
	u32 max_recv_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline_data;
	u16 pkey_index;
	u16 alt_pkey_index;
	u8 en_sqd_async_notify;
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
	u8 reserved[5];
};
static_assert(sizeof(QpAttr) == 144 && __builtin_offsetof(QpAttr, pkey_index) == 124);

struct GetEvent {
	u64 response;
};

struct UdParam {
	u32 qp_num;
	u32 qkey;
	AhAttr ah_attr;
	u8 private_data[private_data_max];
	u8 private_data_len;
	u8 reserved[7];
};
static_assert(sizeof(UdParam) == 304);

/* Aligned to 32 bits, because it is part of an event. */
struct Event {
	u64 uid;
	u32 id;
	u32 event;
	s32 status;
	union {
		ConnParam conn;
		UdParam ud;
	} param;
	u32 reserved;
	Ece ece;
};
static_assert(sizeof(Event) == 336 && __builtin_offsetof(Event, param) == 20 &&
	      __builtin_offsetof(Event, reserved) == 324);
inline constexpr u16 event_least = 324;

struct SetOption {
	u64 optval;
	u32 id;
	u32 level;
	u32 optname;
	u32 optlen;
};
static_assert(sizeof(SetOption) == 24);

enum OptionLevel : u32 {
	option_id = 0,
	option_ib = 1,
};
enum IdOption : u32 {
	option_tos = 0,
	option_reuseaddr = 1,
	option_afonly = 2,
	option_ack_timeout = 3,
};
enum IbOption : u32 {
	option_path = 1,
};

struct Notify {
	u32 id;
	u32 event;
};

struct JoinIpMcast {
	u64 response;
	u64 uid;
	Ip addr;
	u32 id;
};
static_assert(sizeof(JoinIpMcast) == 48);

struct JoinMcast {
	u64 response;
	u64 uid;
	u32 id;
	u16 addr_size;
	u16 join_flags;
	Storage addr;
};
static_assert(sizeof(JoinMcast) == 152);

enum JoinFlags : u16 {
	join_full_member = 0,
	join_send_only = 1,
};

/* Moves an ID to this file from another file, which the process has open as @fd. */
struct MigrateId {
	u64 response;
	u32 id;
	s32 fd;
};
static_assert(sizeof(MigrateId) == 16);

} // namespace rdma_ucm::abi
