// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the mailbox layouts of the ConnectX-2's commands. Opcodes, status codes and layouts that
 * it has in common with the InfiniHost III are in <hw/mellanox_icm/commands.hpp>.
 * (Documentation/connectx.rst, "Command interface" and "Mailbox layouts")
 */
#pragma once

#include <hw/mlx4/field.hpp>
#include <hw/mellanox_icm/commands.hpp>

namespace hw::mlx4
{

using mellanox_icm::mailbox_alignment;
using mellanox_icm::mailbox_max;
using mellanox_icm::MadIfc;
using mellanox_icm::Opcode;
using mellanox_icm::PageMapping;
using mellanox_icm::QueryAdapter;
using mellanox_icm::Status;
using mellanox_icm::map_eq_eqn;
using mellanox_icm::map_eq_unmap;
using mellanox_icm::sqd_event;

/* The command interface revision of this generation of cards. */
inline constexpr uint32_t command_interface_revision = 3;

struct QueryFw : Storage<0x100> {
	static constexpr Field fw_pages{0x00, 31, 16};
	static constexpr Field version_major{0x00, 15, 0};
	static constexpr Field version_subminor{0x04, 31, 16};
	static constexpr Field version_minor{0x04, 15, 0};
	static constexpr Field command_revision{0x08, 15, 0};
	static constexpr Field log_max_commands{0x0c, 7, 0};
	static constexpr Field64 clear_interrupt_offset{0x20, 63, 0};
	static constexpr Field clear_interrupt_bar{0x28, 31, 30}; /* BAR number / 2 */
	static constexpr Field64 error_buffer_offset{0x30, 63, 0};
	static constexpr Field error_buffer_size{0x38, 31, 0}; /* dwords */
	static constexpr Field error_buffer_bar{0x3c, 31, 30};
	static constexpr Field64 clock_offset{0x50, 63, 0};
	static constexpr Field clock_bar{0x58, 31, 30};
};

/* Bits of QueryDevCap::flags. */
namespace dev_cap_flag
{
inline constexpr uint64_t rc = 1ull << 0;
inline constexpr uint64_t uc = 1ull << 1;
inline constexpr uint64_t ud = 1ull << 2;
inline constexpr uint64_t xrc = 1ull << 3;
inline constexpr uint64_t srq = 1ull << 6;
inline constexpr uint64_t ipoib_checksum = 1ull << 7;
inline constexpr uint64_t bad_pkey_counter = 1ull << 8;
inline constexpr uint64_t bad_qkey_counter = 1ull << 9;
inline constexpr uint64_t dpdp = 1ull << 12;
inline constexpr uint64_t big_lso_headers = 1ull << 15;
inline constexpr uint64_t memory_windows = 1ull << 16;
inline constexpr uint64_t apm = 1ull << 17;
inline constexpr uint64_t atomics = 1ull << 18;
inline constexpr uint64_t ud_av_port_check = 1ull << 20;
inline constexpr uint64_t ud_multicast = 1ull << 21;
inline constexpr uint64_t unicast_loopback = 1ull << 32;
inline constexpr uint64_t port_management_event = 1ull << 59;
} // namespace dev_cap_flag

/* Bits of QueryDevCap::bmme_flags. */
namespace bmme_flag
{
inline constexpr uint32_t type2b_windows = 1u << 1;
inline constexpr uint32_t local_invalidate = 1u << 6;
inline constexpr uint32_t remote_invalidate = 1u << 7;
inline constexpr uint32_t type2_windows = 1u << 9;
inline constexpr uint32_t reserved_lkey = 1u << 10;
inline constexpr uint32_t fast_register = 1u << 11;
} // namespace bmme_flag

struct QueryDevCap : Storage<0x100> {
	static constexpr Field log_max_srq_size{0x10, 31, 24};
	static constexpr Field log_max_qp_size{0x10, 23, 16};
	static constexpr Field log_reserved_qps{0x10, 11, 8};
	static constexpr Field log_max_qps{0x10, 4, 0};
	static constexpr Field log_reserved_srqs{0x14, 31, 28};
	static constexpr Field log_max_srqs{0x14, 20, 16};
	static constexpr Field reserved_eqs{0x18, 31, 24};
	static constexpr Field log_max_cq_size{0x18, 23, 16};
	static constexpr Field log_reserved_cqs{0x18, 11, 8};
	static constexpr Field log_max_cqs{0x18, 4, 0};
	static constexpr Field log_max_mpts{0x1c, 21, 16};
	static constexpr Field log_reserved_eqs{0x1c, 11, 8};
	static constexpr Field log_max_eqs{0x1c, 3, 0};
	static constexpr Field log_reserved_mtts{0x20, 31, 28};
	static constexpr Field log_max_mrw_size{0x20, 22, 16};
	static constexpr Field log_reserved_mrws{0x20, 11, 8};
	static constexpr Field log_max_mtts{0x20, 5, 0};
	static constexpr Field log_max_requester_reads{0x28, 21, 16};
	static constexpr Field log_max_responder_reads{0x28, 5, 0};
	static constexpr Field log_max_lso{0x2c, 20, 16};
	static constexpr Field log_max_responder_reads_global{0x2c, 5, 0};
	static constexpr Field local_ack_delay{0x34, 20, 16};
	static constexpr Field rev2_mtu_width{0x34, 15, 8};
	static constexpr Field max_vls{0x34, 7, 4};
	static constexpr Field num_ports{0x34, 3, 0};
	static constexpr Field log_max_message{0x38, 28, 24};
	static constexpr Field static_rates{0x3c, 31, 16};
	static constexpr Field64 flags{0x40, 63, 0};
	static constexpr Field reserved_uars{0x48, 31, 28};
	static constexpr Field log_uar_size{0x48, 21, 16}; /* 2^(20 + n) bytes */
	static constexpr Field log_min_page_size{0x48, 7, 0};
	static constexpr Field blueflame{0x4c, 31, 31};
	static constexpr Field log_blueflame_size{0x4c, 20, 16};
	static constexpr Field log_blueflame_per_page{0x4c, 13, 8};
	static constexpr Field max_sq_sge{0x50, 23, 16};
	static constexpr Field max_sq_wqe_size{0x50, 15, 0};
	static constexpr Field max_rq_sge{0x54, 23, 16};
	static constexpr Field max_rq_wqe_size{0x54, 15, 0};
	static constexpr Field log_max_qp_mcg{0x60, 23, 16};
	static constexpr Field reserved_mcgs{0x60, 11, 8};
	static constexpr Field log_max_mcg{0x60, 7, 0};
	static constexpr Field reserved_pds{0x64, 31, 28};
	static constexpr Field log_max_pds{0x64, 21, 16};
	static constexpr Field reserved_xrcds{0x64, 15, 12};
	static constexpr Field log_max_xrcds{0x64, 4, 0};
	static constexpr Field rdmarc_entry_size{0x80, 31, 16};
	static constexpr Field qpc_entry_size{0x80, 15, 0};
	static constexpr Field auxc_entry_size{0x84, 31, 16};
	static constexpr Field altc_entry_size{0x84, 15, 0};
	static constexpr Field eqc_entry_size{0x88, 31, 16};
	static constexpr Field cqc_entry_size{0x88, 15, 0};
	static constexpr Field srqc_entry_size{0x8c, 31, 16};
	static constexpr Field cmpt_entry_size{0x8c, 15, 0};
	static constexpr Field mtt_entry_size{0x90, 31, 16};
	static constexpr Field dmpt_entry_size{0x90, 15, 0};
	static constexpr Field bmme_flags{0x94, 31, 0};
	static constexpr Field reserved_lkey{0x98, 31, 0};
	static constexpr Field64 max_icm_size{0xa0, 63, 0};
};

struct QueryPort : Storage<0x100> {
	static constexpr Field link_up{0x00, 31, 31};
	static constexpr Field ethernet_supported{0x00, 25, 25};
	static constexpr Field infiniband_supported{0x00, 24, 24};
	static constexpr Field max_mtu{0x00, 19, 16};
	static constexpr Field link_speed{0x04, 27, 24};
	static constexpr Field link_width{0x04, 11, 8};
	static constexpr Field log_max_gids{0x04, 7, 4};
	static constexpr Field log_max_pkeys{0x04, 3, 0};
	static constexpr Field log_max_vlans{0x08, 15, 12};
	static constexpr Field log_max_macs{0x08, 11, 8};
	static constexpr Field max_vls{0x08, 3, 0};
};

struct InitHca : Storage<0x200> {
	static constexpr Field version{0x000, 31, 24};
	static constexpr uint32_t version_value = 2;
	static constexpr Field core_clock{0x00c, 31, 16};     /* MHz; QUERY_HCA only */
	static constexpr Field log_cache_line{0x00c, 15, 13}; /* minus 4 */
	static constexpr Field cache_line_valid{0x00c, 12, 12};
	static constexpr Field flags{0x014, 31, 0};
	static constexpr uint32_t flag_ud_av_check = 1u << 0;
	static constexpr uint32_t flag_big_endian_host = 1u << 1;
	static constexpr uint32_t flag_ipoib_checksum = 1u << 3;
	static constexpr Field64 qpc_base{0x030, 63, 5};
	static constexpr Field log_qps{0x034, 4, 0};
	static constexpr Field64 srqc_base{0x048, 63, 5};
	static constexpr Field log_srqs{0x04c, 4, 0};
	static constexpr Field64 cqc_base{0x050, 63, 5};
	static constexpr Field log_cqs{0x054, 4, 0};
	static constexpr Field64 altc_base{0x060, 63, 0};
	static constexpr Field64 auxc_base{0x070, 63, 0};
	static constexpr Field64 eqc_base{0x080, 63, 5};
	static constexpr Field log_eqs{0x084, 4, 0};
	static constexpr Field64 rdmarc_base{0x090, 63, 5};
	static constexpr Field log_reads_per_qp{0x094, 2, 0};
	static constexpr Field64 mcg_base{0x0c0, 63, 0};
	static constexpr Field log_mcg_entry_size{0x0d0, 4, 0};
	static constexpr Field log_mcg_hash_size{0x0d4, 4, 0};
	static constexpr Field log_mcg_size{0x0d8, 4, 0};
	static constexpr Field64 dmpt_base{0x0f0, 63, 0};
	static constexpr Field memory_windows_enable{0x0f8, 31, 31};
	static constexpr Field log_dmpts{0x0f8, 5, 0};
	static constexpr Field64 mtt_base{0x100, 63, 0};
	static constexpr Field64 cmpt_base{0x108, 63, 0};
	static constexpr Field log_uars{0x128, 11, 8};
	static constexpr Field log_uar_page_size{0x128, 7, 0}; /* minus 12 */
};

struct SetPort : Storage<0x100> {
	static constexpr Field mtu_valid{0x00, 22, 22};
	static constexpr Field vl_valid{0x00, 21, 21};
	static constexpr Field max_pkey_valid{0x00, 20, 20};
	static constexpr Field max_gid_valid{0x00, 19, 19};
	static constexpr Field system_image_guid_valid{0x00, 18, 18};
	static constexpr Field node_guid_valid{0x00, 17, 17};
	static constexpr Field guid0_valid{0x00, 16, 16};
	static constexpr Field mtu{0x00, 15, 12};
	static constexpr Field vls{0x00, 7, 4};
	static constexpr Field reset_qkey_violations{0x00, 0, 0};
	static constexpr Field capability_mask{0x04, 31, 0};
	static constexpr Field64 system_image_guid{0x08, 63, 0};
	static constexpr Field64 guid0{0x10, 63, 0};
	static constexpr Field64 node_guid{0x18, 63, 0};
};

/* MOD_STAT_CFG with a mailbox: the fields that a query returns. */
struct ModStatCfg : Storage<0x100> {
	static constexpr Field log_page_size_valid{0x00, 8, 8};
	static constexpr Field log_page_size{0x00, 7, 0};
	static constexpr Field port_guid_high_valid{0x10, 31, 31};
	static constexpr Field port_guid_high{0x14, 31, 0};
	static constexpr Field port_guid_low_valid{0x18, 31, 31};
	static constexpr Field port_guid_low{0x1c, 31, 0};
	static constexpr Field node_guid_high_valid{0x20, 31, 31};
	static constexpr Field node_guid_high{0x24, 31, 0};
	static constexpr Field node_guid_low_valid{0x28, 31, 31};
	static constexpr Field node_guid_low{0x2c, 31, 0};
	static constexpr uint32_t op_set = 0;
	static constexpr uint32_t op_query = 2;
	static constexpr Field in_modifier_port{0x00, 15, 8};
};

/* Operation modifiers of MODIFY_CQ. */
inline constexpr uint32_t modify_cq_resize = 0;
inline constexpr uint32_t modify_cq_moderation = 1;

/* WRITE_MTT: the byte offset of the first entry, followed by the entries. */
struct WriteMttHeader : Storage<16> {
	static constexpr Field64 offset{0x00, 63, 3};
};

/* DIAG_RPRT: 32-bit counters and their offsets. */
struct DiagReport : Storage<0x200> {
	static constexpr uint32_t op_transport_errors = 2;
	static constexpr Field rq_local_length{0x00, 31, 0};
	static constexpr Field sq_local_length{0x04, 31, 0};
	static constexpr Field rq_local_qp_operation{0x08, 31, 0};
	static constexpr Field sq_local_qp_operation{0x0c, 31, 0};
	static constexpr Field rq_local_protection{0x18, 31, 0};
	static constexpr Field sq_local_protection{0x1c, 31, 0};
	static constexpr Field rq_flushed{0x20, 31, 0};
	static constexpr Field sq_flushed{0x24, 31, 0};
	static constexpr Field sq_window_bind{0x2c, 31, 0};
	static constexpr Field sq_bad_response{0x34, 31, 0};
	static constexpr Field sq_remote_invalid_request{0x44, 31, 0};
	static constexpr Field rq_remote_invalid_request{0x48, 31, 0};
	static constexpr Field sq_remote_access{0x4c, 31, 0};
	static constexpr Field rq_remote_access{0x50, 31, 0};
	static constexpr Field sq_remote_operation{0x54, 31, 0};
	static constexpr Field sq_retries_exceeded{0x5c, 31, 0};
	static constexpr Field sq_rnr_retries_exceeded{0x64, 31, 0};
	static constexpr Field rq_rnr_naks{0x68, 31, 0};
	static constexpr Field sq_rnr_naks{0x6c, 31, 0};
	static constexpr Field rq_out_of_sequence{0x100, 31, 0};
	static constexpr Field sq_out_of_sequence{0x104, 31, 0};
	static constexpr Field rq_ud_discarded{0x118, 31, 0};
	static constexpr Field cq_overflows{0x1a0, 31, 0};
};

} // namespace hw::mlx4
