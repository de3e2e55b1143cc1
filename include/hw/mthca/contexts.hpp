// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the contexts of the InfiniHost III's objects, in the layout of command mailboxes.
 * (Documentation/infinihost.rst, "Contexts")
 */
#pragma once

#include <hw/mellanox_icm/contexts.hpp>
#include <hw/mthca/registers.hpp>

namespace hw::mthca
{

/* The values of states, service types, optional parameters and statuses are those of the family. */
using mellanox_icm::MigrationState;
using mellanox_icm::QpState;
using mellanox_icm::ServiceType;
using mellanox_icm::mpt_key;
using mellanox_icm::qp_mailbox_context;
using mellanox_icm::qp_mailbox_opt_mask;
namespace eq_state = mellanox_icm::eq_state;
namespace mpt_status = mellanox_icm::mpt_status;
namespace qp_opt
{
using namespace mellanox_icm::qp_opt;
/* On this card, bit 13 is the RNR retry count of the alternate path. */
inline constexpr uint32_t rnr_retry = 1u << 15;
} // namespace qp_opt

struct PathLayout {
	static constexpr size_t size = 32;
	static constexpr Field port{0x00, 25, 24};
	static constexpr Field pkey_index{0x00, 6, 0};
	static constexpr Field rnr_retry{0x04, 31, 29};
	static constexpr Field grh{0x04, 23, 23};
	static constexpr Field source_path_bits{0x04, 22, 16};
	static constexpr Field remote_lid{0x04, 15, 0};
	static constexpr Field ack_timeout{0x08, 31, 27};
	static constexpr Field sgid_index{0x08, 21, 16};
	static constexpr Field static_rate{0x08, 10, 8};
	static constexpr Field hop_limit{0x08, 7, 0};
	static constexpr Field sl{0x0c, 31, 28};
	static constexpr Field traffic_class{0x0c, 27, 20};
	static constexpr Field flow_label{0x0c, 19, 0};
	static constexpr size_t remote_gid = 0x10;
};

/* In a command mailbox, the context follows the optional parameter mask, at qp_mailbox_context. */
struct QpContext : Storage<0x100> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field service_type{0x00, 18, 16};
	static constexpr Field descriptor_events{0x00, 8, 8};
	static constexpr Field migration_state{0x00, 12, 11};
	static constexpr Field mtu{0x08, 31, 29};
	static constexpr Field log_max_message{0x08, 28, 24};
	static constexpr Field log_rq_size{0x08, 22, 19};
	static constexpr Field log_rq_stride{0x08, 18, 16}; /* minus 4 */
	static constexpr Field log_sq_size{0x08, 14, 11};
	static constexpr Field log_sq_stride{0x08, 10, 8}; /* minus 4 */
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field local_qpn{0x10, 23, 0};
	static constexpr Field remote_qpn{0x14, 23, 0};
	static constexpr size_t primary_path = 0x20;
	static constexpr size_t alternate_path = 0x40;
	static constexpr Field pd{0x64, 23, 0};
	static constexpr Field wqe_base_high{0x68, 31, 0};
	static constexpr Field wqe_lkey{0x6c, 31, 0};
	static constexpr Field ack_request_frequency{0x70, 31, 28};
	static constexpr Field flight_limit{0x70, 27, 24}; /* messages, log2 */
	static constexpr Field sra_max{0x70, 23, 21};
	static constexpr Field retry_count{0x70, 18, 16};
	static constexpr Field requester_read{0x70, 15, 15};
	static constexpr Field requester_write{0x70, 14, 14};
	static constexpr Field requester_atomic{0x70, 13, 13};
	static constexpr Field current_rnr_retry{0x70, 10, 8};
	static constexpr Field current_retry{0x70, 7, 5};
	static constexpr Field signal_all{0x70, 3, 3};
	static constexpr Field next_send_psn{0x78, 23, 0};
	static constexpr Field send_cqn{0x7c, 23, 0};
	static constexpr Field send_base{0x80, 31, 6}; /* low dword of an address */
	static constexpr Field send_record{0x84, 31, 0};
	static constexpr Field last_acked_psn{0x88, 23, 0};
	static constexpr Field ssn{0x8c, 23, 0};
	static constexpr Field rra_max{0x90, 23, 21};
	static constexpr Field remote_read{0x90, 15, 15};
	static constexpr Field remote_write{0x90, 14, 14};
	static constexpr Field remote_atomic{0x90, 13, 13};
	static constexpr Field invalid_credits{0x90, 4, 4};
	static constexpr Field signal_all_receives{0x90, 3, 3};
	static constexpr Field min_rnr_timer{0x94, 28, 24};
	static constexpr Field next_receive_psn{0x94, 23, 0};
	static constexpr Field rdb_address{0x98, 31,
					   5}; /* low dword of the place of its entries in ICM */
	static constexpr Field receive_cqn{0x9c, 23, 0};
	static constexpr Field receive_base{0xa0, 31, 6};
	static constexpr Field receive_record{0xa4, 31, 0};
	static constexpr Field qkey{0xa8, 31, 0};
	static constexpr Field srq_enable{0xac, 24, 24};
	static constexpr Field srqn{0xac, 23, 0};
	static constexpr Field receive_msn{0xb0, 23, 0};
	static constexpr Field rq_counter{0xb4, 31, 16};
	static constexpr Field sq_counter{0xb4, 15, 0};
};
static_assert(sizeof(QpContext) == 0x100);
static_assert(QpContext::alternate_path == QpContext::primary_path + PathLayout::size);

inline constexpr size_t qp_mailbox_size = qp_mailbox_context + QpContext::size;

struct CqContext : Storage<64> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field64 start{0x04, 63, 0};
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field eqn{0x14, 7, 0};
	static constexpr Field pd{0x18, 23, 0};
	static constexpr Field lkey{0x1c, 31, 0};
	static constexpr Field last_notified_index{0x20, 31, 0};
	static constexpr Field solicited_producer_index{0x24, 31, 0};
	static constexpr Field consumer_index{0x28, 31, 0};
	static constexpr Field producer_index{0x2c, 31, 0};
	static constexpr Field cqn{0x30, 23, 0};
	static constexpr Field ci_record{0x34, 31, 0};
	static constexpr Field arm_record{0x38, 31, 0};
};
static_assert(sizeof(CqContext) == 64);

struct EqContext : Storage<64> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field overrun_ignore{0x00, 17, 17};
	static constexpr Field state{0x00, 11, 8};
	static constexpr Field64 start{0x04, 63, 0};
	static constexpr Field log_size{0x0c, 28, 24};
	/* 1: an MSI-X vector; 0: an interrupt pin. */
	static constexpr Field by_message{0x14, 7, 7};
	static constexpr Field vector{0x14, 5, 0};
	static constexpr Field pd{0x18, 23, 0};
	static constexpr Field lkey{0x1c, 31, 0};
	static constexpr Field consumer_index{0x28, 31, 0};
	static constexpr Field producer_index{0x2c, 31, 0};
};
static_assert(sizeof(EqContext) == 64);

struct SrqContext : Storage<48> {
	static constexpr Field state{0x00, 31, 28};
	static constexpr Field log_size{0x00, 27, 24};
	static constexpr Field srqn{0x00, 23, 0};
	static constexpr Field lkey{0x04, 31, 0};
	static constexpr Field record{0x08, 31, 0};
	static constexpr Field log_stride{0x0c, 31, 29}; /* minus 4 */
	static constexpr Field uar_page{0x0c, 23, 0};
	static constexpr Field64 start{0x10, 63, 6};
	static constexpr Field pd{0x18, 23, 0};
	static constexpr Field limit{0x1c, 31, 16};
	static constexpr Field wqe_count{0x1c, 15, 0};
	static constexpr Field wqe_counter{0x20, 15, 0};
};
static_assert(sizeof(SrqContext) == 48);

/* Firmware addresses page lists in segments of this size (log2 of the number of entries). */
inline constexpr uint32_t log_mtt_segment = 3;

struct MptEntry : mellanox_icm::MptEntry {
	static constexpr Field log_page_size{0x04, 4, 0};  /* minus 12 */
	static constexpr uint64_t whole = ~uint64_t{0};    /* as a length: all memory */
	static constexpr Field64 mtt_address{0x2c, 63, 3}; /* absolute address in ICM */
};
static_assert(sizeof(MptEntry) == 64);

using mellanox_icm::McgHeader;

struct McgMember {
	static constexpr size_t size = 4;
	static constexpr Field in_use{0x00, 31, 31};
	static constexpr Field qpn{0x00, 23, 0};
};

} // namespace hw::mthca
