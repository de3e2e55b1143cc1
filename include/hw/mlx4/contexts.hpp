// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the contexts of the ConnectX-2's objects, in the layout of command mailboxes and of ICM:
 * queue pairs, completion, event and shared receive queues, memory keys, page lists and multicast
 * groups. (Documentation/connectx.rst, "Contexts" and "Memory model")
 */
#pragma once

#include <hw/mlx4/field.hpp>
#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/contexts.hpp>

namespace hw::mlx4
{

using mellanox_icm::MigrationState;
using mellanox_icm::MttEntry;
using mellanox_icm::QpState;
using mellanox_icm::ServiceType;
using mellanox_icm::memory_key;
using mellanox_icm::mpt_key;
using mellanox_icm::qp_mailbox_context;
using mellanox_icm::qp_mailbox_opt_mask;
namespace cq_state = mellanox_icm::cq_state;
namespace cq_status = mellanox_icm::cq_status;
namespace eq_state = mellanox_icm::eq_state;
namespace mpt_status = mellanox_icm::mpt_status;
namespace qp_opt = mellanox_icm::qp_opt;

/* An address path: 44 bytes; a QP context has two. */
struct AddressPathLayout {
	static constexpr size_t size = 44;
	static constexpr Field force_loopback{0x00, 31, 31};
	static constexpr Field disable_pkey_check{0x00, 14, 14};
	static constexpr Field pkey_index{0x00, 6, 0};
	static constexpr Field counter_index{0x04, 31, 24};
	static constexpr Field grh{0x04, 23, 23};
	static constexpr Field source_path_bits{0x04, 22, 16};
	static constexpr Field remote_lid{0x04, 15, 0};
	static constexpr Field ack_timeout{0x08, 31, 27};
	static constexpr Field sgid_index{0x08, 22, 16};
	static constexpr Field static_rate{0x08, 11, 8};
	static constexpr Field hop_limit{0x08, 7, 0};
	static constexpr Field traffic_class{0x0c, 27, 20};
	static constexpr Field flow_label{0x0c, 19, 0};
	static constexpr size_t remote_gid = 0x10;
	static constexpr Field sched_queue{0x20, 31, 24};
	static constexpr Field sched_port{0x20, 30, 30}; /* port - 1 */
	static constexpr Field sched_sl{0x20, 29, 26};
};

/*
 * The QP context. In a command mailbox, it follows the optional parameter mask, at
 * qp_mailbox_context.
 */
struct QpContext : Storage<0xf8> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field service_type{0x00, 19, 16};
	static constexpr Field migration_state{0x00, 12, 11};
	static constexpr Field pd{0x04, 23, 0};
	static constexpr Field mtu{0x08, 31, 29};
	static constexpr Field log_max_message{0x08, 28, 24};
	static constexpr Field log_rq_size{0x08, 22, 19};
	static constexpr Field log_rq_stride{0x08, 18, 16}; /* minus 4 */
	static constexpr Field sq_no_prefetch{0x08, 15, 15};
	static constexpr Field log_sq_size{0x08, 14, 11};  /* or no_send_queue */
	static constexpr Field log_sq_stride{0x08, 10, 8}; /* minus 4 */
	/* An invalid size, which Linux also uses for XRC targets. */
	static constexpr std::uint32_t no_send_queue = 15;
	static constexpr Field reserved_lkey{0x08, 4, 4};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field local_qpn{0x10, 23, 0};
	static constexpr Field remote_qpn{0x14, 23, 0};
	static constexpr size_t primary_path = 0x18;
	static constexpr size_t alternate_path = 0x44;
	static constexpr Field ack_request_frequency{0x70, 31, 28};
	static constexpr Field sra_max{0x70, 23, 21};
	static constexpr Field retry_count{0x70, 18, 16};
	static constexpr Field rnr_retry{0x70, 15, 13};
	static constexpr Field fast_register{0x70, 11, 11};
	static constexpr Field current_rnr_retry{0x70, 10, 8};
	static constexpr Field current_retry{0x70, 7, 5};
	static constexpr Field next_send_psn{0x78, 23, 0};
	static constexpr Field send_cqn{0x7c, 23, 0};
	static constexpr Field last_acked_psn{0x88, 23, 0};
	static constexpr Field ssn{0x8c, 23, 0};
	static constexpr Field rra_max{0x90, 23, 21};
	static constexpr Field remote_read{0x90, 15, 15};
	static constexpr Field remote_write{0x90, 14, 14};
	static constexpr Field remote_atomic{0x90, 13, 13};
	static constexpr Field page_offset{0x90, 11, 6}; /* units of 64 bytes */
	static constexpr Field responder_invalid_credits{0x90, 4, 4};
	static constexpr Field min_rnr_timer{0x94, 28, 24};
	static constexpr Field next_receive_psn{0x94, 23, 0};
	static constexpr Field xrc_domain{0x98, 15, 0};
	static constexpr Field receive_cqn{0x9c, 23, 0};
	static constexpr Field64 doorbell_record{0xa0, 63, 2};
	static constexpr Field qkey{0xa8, 31, 0};
	static constexpr Field srq_enable{0xac, 24, 24};
	static constexpr Field srqn{0xac, 23, 0};
	static constexpr Field receive_msn{0xb0, 23, 0};
	static constexpr Field rq_counter{0xb4, 31, 16};
	static constexpr Field sq_counter{0xb4, 15, 0};
	static constexpr Field log_page_size{0xc8, 29, 24}; /* minus 12 */
	static constexpr Field64 mtt_offset{0xc8, 39, 3};
};
static_assert(sizeof(QpContext) == 0xf8);
static_assert(QpContext::alternate_path == QpContext::primary_path + AddressPathLayout::size);

inline constexpr size_t qp_mailbox_size = 0x100;

struct CqContext : Storage<64> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field page_offset{0x08, 11, 5}; /* units of 32 bytes */
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field moderation_period{0x10, 31, 16}; /* microseconds */
	static constexpr Field moderation_count{0x10, 15, 0};
	static constexpr Field eqn{0x14, 8, 0};
	static constexpr Field log_page_size{0x18, 29, 24}; /* minus 12 */
	static constexpr Field64 mtt_offset{0x18, 39, 3};
	static constexpr Field last_notified_index{0x20, 23, 0};
	static constexpr Field solicited_producer_index{0x24, 23, 0};
	static constexpr Field consumer_index{0x28, 23, 0};
	static constexpr Field producer_index{0x2c, 23, 0};
	static constexpr Field64 doorbell_record{0x38, 63, 3};
};
static_assert(sizeof(CqContext) == 64);

struct EqContext : Storage<64> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field page_offset{0x08, 11, 5}; /* units of 32 bytes */
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field moderation_period{0x10, 31, 16};
	static constexpr Field moderation_count{0x10, 15, 0};
	static constexpr Field vector{0x14, 9, 0};
	static constexpr Field log_page_size{0x18, 29, 24}; /* minus 12 */
	static constexpr Field64 mtt_offset{0x18, 39, 3};
	static constexpr Field consumer_index{0x28, 23, 0};
	static constexpr Field producer_index{0x2c, 23, 0};
};
static_assert(sizeof(EqContext) == 64);

namespace eq_status
{
inline constexpr uint32_t ok = 0;
inline constexpr uint32_t overflow = 9;
inline constexpr uint32_t write_failure = 10;
} // namespace eq_status

struct SrqContext : Storage<48> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field log_size{0x00, 27, 24};
	static constexpr Field srqn{0x00, 23, 0};
	static constexpr Field log_stride{0x04, 26, 24}; /* minus 4 */
	static constexpr Field xrc_domain{0x04, 15, 0};
	static constexpr Field page_offset{0x08, 29, 24};   /* units of 64 bytes */
	static constexpr Field cqn{0x08, 23, 0};            /* XRC only */
	static constexpr Field log_page_size{0x10, 29, 24}; /* minus 12 */
	static constexpr Field64 mtt_offset{0x10, 39, 3};
	static constexpr Field pd{0x18, 23, 0};
	static constexpr Field limit{0x1c, 31, 16};
	static constexpr Field wqe_count{0x1c, 15, 0};
	static constexpr Field wqe_counter{0x20, 15, 0};
	static constexpr Field64 doorbell_record{0x28, 63, 2};
};
static_assert(sizeof(SrqContext) == 48);

/* A memory protection entry: one memory region or window. */
struct MptEntry : mellanox_icm::MptEntry {
	static constexpr Field qpn{0x04, 31, 8}; /* QPN of a type-2 window */
	static constexpr Field bound_to_qp{0x04, 7, 7};
	static constexpr Field remote_access_enable{0x0c, 28, 28};
	static constexpr Field fast_register_enable{0x0c, 27, 27};
	static constexpr Field invalidate_enable{0x0c, 25, 25};
	static constexpr Field remote_invalidate_enable{0x0c, 24, 24};
	static constexpr Field lkey{0x20, 31, 0}; /* of a window: the key of its region */
	static constexpr Field window_count{0x24, 23, 0};
	static constexpr Field first_byte_offset_enable{0x28, 23, 23};
	static constexpr Field length64{0x28, 22, 22}; /* the size of the region is 2^64 bytes */
	static constexpr Field block_mode{0x28, 21, 21};
	static constexpr Field64 mtt_offset{0x2c, 39, 3};
	static constexpr Field mtt_size{0x34, 31, 0};
	static constexpr Field entity_size{0x38, 20, 0}; /* log2 of the page size */
	static constexpr Field first_byte_offset{0x3c, 20, 0};
};
static_assert(sizeof(MptEntry) == 64);

/* The header of a multicast group's entry. Dwords for the members follow. */
struct McgHeader : mellanox_icm::McgHeader {
	static constexpr Field protocol{0x04, 31, 30};
	static constexpr Field member_count{0x04, 23, 0};
};

struct McgMember {
	static constexpr size_t size = 4;
	static constexpr Field block_loopback{0x00, 30, 30};
	static constexpr Field qpn{0x00, 23, 0};
};

} // namespace hw::mlx4
