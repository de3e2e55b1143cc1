// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the contexts of the ConnectX-5's objects in commands. Offsets are from the start of the
 * context. (Documentation/mlx5.rst, "Contexts")
 */
#pragma once

#include <hw/mlx5/commands.hpp>

namespace hw::mlx5
{

/* Event and completion queues. */
namespace queue_state
{
constexpr std::uint32_t armed = 9;
constexpr std::uint32_t fired = 10;
} // namespace queue_state
namespace queue_status
{
constexpr std::uint32_t ok = 0;
constexpr std::uint32_t overflow = 9;
constexpr std::uint32_t write_failure = 10;
} // namespace queue_status

struct EqContext : Storage<0x40> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field page_offset{0x08, 11, 6};
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field vector{0x14, 11, 0};
	static constexpr Field log_page_size{0x18, 28, 24};
	static constexpr Field consumer{0x28, 23, 0};
	static constexpr Field producer{0x2c, 23, 0};
};
/* In CREATE_EQ: the first 64 event types. Bit n selects type n. */
constexpr Field64 eq_event_mask{0x58, 63, 0};

struct CqContext : Storage<0x40> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field entry_size{0x00, 23, 21};
	static constexpr Field collapsed{0x00, 20, 20};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field compressed{0x00, 14, 14};
	static constexpr Field mini_format{0x00, 13, 12};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field compression_layout{0x00, 1, 0};
	static constexpr Field page_offset{0x08, 11, 6};
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field moderation_period{0x10, 27, 16}; /* microseconds */
	static constexpr Field moderation_count{0x10, 15, 0};
	static constexpr Field eqn{0x14, 7, 0};
	static constexpr Field log_page_size{0x18, 28, 24};
	static constexpr Field last_notified{0x20, 23, 0};
	static constexpr Field last_solicited{0x24, 23, 0};
	static constexpr Field consumer{0x28, 23, 0};
	static constexpr Field producer{0x2c, 23, 0};
	static constexpr Field64 record{0x38, 63, 0};
	/* Values of entry_size. */
	static constexpr std::uint32_t entry_64 = 0;
	static constexpr std::uint32_t entry_128 = 1;
	static constexpr std::uint32_t entry_128_padded = 2;
	/* mini_format: what the first word of a responder's mini CQE has. */
	static constexpr std::uint32_t mini_hash = 0;
	static constexpr std::uint32_t mini_checksum = 1;
	static constexpr std::uint32_t mini_checksum_stride = 3;
	/* compression_layout: the only one that the card has. */
	static constexpr std::uint32_t basic_layout = 0;
};
/* MODIFY_CQ, without the context. */
struct ModifyCq {
	static constexpr std::uint32_t op_modify = 0;
	static constexpr std::uint32_t op_resize = 1;
	static constexpr Field selector{0x0c, 31, 0};
	static constexpr std::uint32_t select_period = 1;
	static constexpr std::uint32_t select_count = 2;
};

struct MkeyContext : Storage<0x40> {
	static constexpr Field free{0x00, 30, 30};
	static constexpr Field mode_high{0x00, 28, 26};
	static constexpr Field umr_enable{0x00, 15, 15};
	static constexpr Field atomic{0x00, 14, 14};
	static constexpr Field remote_write{0x00, 13, 13};
	static constexpr Field remote_read{0x00, 12, 12};
	static constexpr Field local_write{0x00, 11, 11};
	static constexpr Field local_read{0x00, 10, 10};
	static constexpr Field mode_low{0x00, 9, 8};
	static constexpr Field qpn{0x04, 31, 8};
	static constexpr Field variant{0x04, 7, 0};
	static constexpr Field length64{0x0c, 31, 31};
	static constexpr Field bsf_enable{0x0c, 30, 30};
	static constexpr Field remote_invalidate{0x0c, 24, 24};
	static constexpr Field pd{0x0c, 23, 0};
	static constexpr Field64 start{0x10, 63, 0};
	static constexpr Field64 length{0x18, 63, 0};
	/* space for translations, in units of 16 bytes */
	static constexpr Field octwords{0x34, 31, 0};
	static constexpr Field log_page_size{0x38, 4, 0};

	static constexpr std::uint32_t any_qp = 0xffffff;
};
/*
 * mode_high * 4 + mode_low: how a key translates addresses. `pieces` are KLMs, each with a length,
 * a key and an address; `equal_pieces` are KSMs, each with a key and an address, all of the same
 * length.
 */
enum class MkeyMode : std::uint8_t { physical = 0, pages = 1, pieces = 2, equal_pieces = 3 };
/* In CREATE_MKEY: the number of octwords that the page list occupies. */
constexpr Field mkey_actual_octwords{0x60, 31, 0};
constexpr std::size_t octword = 16;

/* A path of a queue pair, 44 bytes. A queue pair's context has two of them. */
struct PathLayout : Storage<44> {
	static constexpr Field force_loopback{0x00, 31, 31};
	static constexpr Field pkey_index{0x00, 15, 0};
	static constexpr Field grh{0x04, 23, 23};
	static constexpr Field source_path_bits{0x04, 22, 16};
	static constexpr Field remote_lid{0x04, 15, 0};
	static constexpr Field ack_timeout{0x08, 31, 27};
	static constexpr Field sgid_index{0x08, 23, 16};
	static constexpr Field static_rate{0x08, 11, 8};
	static constexpr Field hop_limit{0x08, 7, 0};
	static constexpr Field traffic_class{0x0c, 27, 20};
	static constexpr Field flow_label{0x0c, 19, 0};
	static constexpr std::size_t remote_gid = 0x10;
	static constexpr Field sl{0x24, 27, 24};
	static constexpr Field port{0x24, 23, 16};
};

enum class QpService : std::uint8_t {
	rc = 0,
	uc = 1,
	ud = 2,
	xrc = 3,
	qp0 = 7,
	qp1 = 8,
	reg_umr = 0xc,
};

struct QpContext : Storage<0xe8> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field service{0x00, 23, 16};
	static constexpr Field migration{0x00, 12, 11};
	static constexpr Field block_loopback{0x04, 30, 30};
	static constexpr Field pd{0x04, 23, 0};
	static constexpr Field mtu{0x08, 31, 29};
	static constexpr Field log_max_message{0x08, 28, 24};
	static constexpr Field log_rq_size{0x08, 22, 19};
	static constexpr Field log_rq_stride{0x08, 18, 16}; /* minus 4 */
	static constexpr Field no_send_queue{0x08, 15, 15};
	static constexpr Field log_sq_size{0x08, 14, 11}; /* size in blocks of 64 bytes */
	static constexpr Field reserved_lkey{0x08, 4, 4};
	static constexpr Field offload_mode{0x08, 3, 0};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field user_index{0x10, 23, 0};
	static constexpr Field log_page_size{0x14, 28, 24};
	static constexpr Field remote_qpn{0x14, 23, 0};
	static constexpr std::size_t primary_path = 0x18;
	static constexpr Field ack_request_frequency{0x70, 31, 28};
	static constexpr Field log_requester_reads{0x70, 23, 21};
	static constexpr Field retry_count{0x70, 18, 16};
	static constexpr Field rnr_retry{0x70, 15, 13};
	static constexpr Field current_rnr_retry{0x70, 10, 8};
	static constexpr Field current_retry{0x70, 7, 5};
	static constexpr Field next_send_psn{0x78, 23, 0};
	static constexpr Field send_cqn{0x7c, 23, 0};
	/* source QPN of datagrams; 0: the QP's own */
	static constexpr Field datagram_source{0x80, 23, 0};
	static constexpr Field last_acked_psn{0x88, 23, 0};
	static constexpr Field ssn{0x8c, 23, 0};
	static constexpr Field log_responder_reads{0x90, 23, 21};
	static constexpr Field atomic_mode{0x90, 19, 16};
	static constexpr Field remote_read{0x90, 15, 15};
	static constexpr Field remote_write{0x90, 14, 14};
	static constexpr Field remote_atomic{0x90, 13, 13};
	static constexpr Field page_offset{0x90, 11, 6};
	static constexpr Field min_rnr_timer{0x94, 28, 24};
	static constexpr Field next_receive_psn{0x94, 23, 0};
	static constexpr Field xrc_domain{0x98, 23, 0};
	static constexpr Field receive_cqn{0x9c, 23, 0};
	static constexpr Field64 record{0xa0, 63, 0};
	static constexpr Field qkey{0xa8, 31, 0};
	static constexpr Field receive_type{0xac, 26, 24};
	static constexpr Field srqn{0xac, 23, 0};
	static constexpr Field receive_msn{0xb0, 23, 0};
	static constexpr Field sq_hardware_counter{0xb4, 31, 16};
	static constexpr Field sq_software_counter{0xb4, 15, 0};
	static constexpr Field rq_hardware_counter{0xb8, 31, 0};
	static constexpr Field rq_software_counter{0xbc, 31, 0};
	static constexpr Field inline_response{0xc4, 15, 8};
	static constexpr Field inline_receive{0xc4, 7, 0};

	/* Values of receive_type. */
	static constexpr std::uint32_t own_queue = 0;
	static constexpr std::uint32_t shared_queue = 1;
	static constexpr std::uint32_t no_queue = 3;
	static constexpr std::uint32_t migrated = 3;
	/*
	 * Values of inline_response and inline_receive: how much data a completion may carry; 0:
	 * none.
	 */
	static constexpr std::uint32_t receive_32_bytes = 0x01;
	static constexpr std::uint32_t receive_64_bytes = 0x02;
	static constexpr std::uint32_t response_32_bytes = 0x11;
	static constexpr std::uint32_t response_64_bytes = 0x22;
	/* Values of offload_mode. */
	static constexpr std::uint32_t no_offload = 0;
	static constexpr std::uint32_t ipoib_offload = 1;
	static constexpr std::uint32_t enhanced_ipoib = 2;
	/*
	 * Value of user_index: completions have the QP number, not an index that the driver chose.
	 */
	static constexpr std::uint32_t no_user_index = 0xffffff;
};
/* The layout of commands on queue pairs. */
namespace qp_command
{
constexpr Field opt_mask{0x10, 31, 0};
constexpr std::size_t context = 0x18;
constexpr std::size_t size = 0x110; /* without a page list */
} // namespace qp_command

/* opt_mask: the optional attributes that a transition changes. */
namespace qp_opt
{
constexpr std::uint32_t alternate_path = 1u << 0;
constexpr std::uint32_t remote_read = 1u << 1;
constexpr std::uint32_t remote_atomic = 1u << 2;
constexpr std::uint32_t remote_write = 1u << 3;
constexpr std::uint32_t pkey_index = 1u << 4;
constexpr std::uint32_t qkey = 1u << 5;
constexpr std::uint32_t min_rnr_timer = 1u << 6;
constexpr std::uint32_t primary_path = 1u << 7;
constexpr std::uint32_t requester_reads = 1u << 8;
constexpr std::uint32_t responder_reads = 1u << 9;
constexpr std::uint32_t migration = 1u << 10;
constexpr std::uint32_t retry_count = 1u << 12;
constexpr std::uint32_t rnr_retry = 1u << 13;
constexpr std::uint32_t ack_timeout = 1u << 14;
constexpr std::uint32_t port = 1u << 16;
constexpr std::uint32_t srqn = 1u << 18;
constexpr std::uint32_t receive_cqn = 1u << 19;
} // namespace qp_opt

/* The work queue of an object that has only one. */
struct WqContext : Storage<0xc0> {
	static constexpr Field type{0x00, 31, 28};
	static constexpr Field page_offset{0x04, 20, 16};
	static constexpr Field limit{0x04, 15, 0};
	static constexpr Field pd{0x08, 23, 0};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field64 record{0x10, 63, 0};
	static constexpr Field hardware_counter{0x18, 31, 0};
	static constexpr Field software_counter{0x1c, 31, 0};
	static constexpr Field log_stride{0x20, 19, 16};
	static constexpr Field log_page_size{0x20, 12, 8};
	static constexpr Field log_size{0x20, 4, 0};
	static constexpr std::uint32_t linked_list = 0;
	static constexpr std::uint32_t cyclic = 1;
};

/* A receive memory pool: a shared receive queue for RC, UC and UD. */
struct RmpContext : Storage<0xf0> {
	static constexpr Field state{0x00, 23, 20};
	static constexpr std::size_t work_queue = 0x30;
	static constexpr std::uint32_t ready = 1;
	static constexpr std::uint32_t error = 3;
};
namespace rmp_command
{
constexpr std::size_t context = 0x20;
constexpr std::size_t pages = 0x110;
constexpr Field bitmask{0x14, 31, 0};
constexpr std::uint32_t set_limit = 1;
} // namespace rmp_command

struct XrcSrqContext : Storage<0x40> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field log_size{0x00, 27, 24};
	static constexpr Field log_stride{0x04, 26, 24}; /* minus 4 */
	static constexpr Field xrc_domain{0x04, 23, 0};
	static constexpr Field page_offset{0x08, 31, 26};
	static constexpr Field cqn{0x08, 23, 0};
	static constexpr Field index_is_number{0x10, 31, 31};
	static constexpr Field log_page_size{0x10, 29, 24};
	static constexpr Field user_index{0x10, 23, 0};
	static constexpr Field pd{0x18, 23, 0};
	static constexpr Field limit{0x1c, 31, 16};
	static constexpr Field count{0x1c, 15, 0};
	static constexpr Field64 record{0x28, 63, 2};
	static constexpr std::uint32_t error = 1;
};
/* ARM_XRC_SRQ. */
struct ArmSrq {
	static constexpr std::uint32_t op_limit = 1;
	static constexpr Field limit{0x0c, 15, 0};
};

} // namespace hw::mlx5
