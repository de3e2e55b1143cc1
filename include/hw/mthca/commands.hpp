// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines those commands of the InfiniHost III that differ from the common ones of mlx4 and mthca
 * (hw/mellanox_icm/commands.hpp): additional opcodes, and mailboxes. (Documentation/infinihost.rst,
 * "Commands")
 */
#pragma once

#include <hw/mthca/registers.hpp>
#include <hw/mellanox_icm/commands.hpp>

namespace hw::mthca
{

using mellanox_icm::MadIfc;
using mellanox_icm::Opcode;
using mellanox_icm::QueryAdapter;
using mellanox_icm::Status;
using mellanox_icm::map_eq_eqn;
using mellanox_icm::map_eq_unmap;
using mellanox_icm::sqd_event;

namespace opcode
{
inline constexpr Opcode query_dev_lim = Opcode::query_dev_cap;
inline constexpr Opcode init_ib = Opcode::init_port;
inline constexpr Opcode close_ib = Opcode::close_port;
inline constexpr Opcode set_ib = Opcode::set_port;
inline constexpr Opcode resize_cq = Opcode::modify_cq;
inline constexpr Opcode disable_lam{0xff7};
inline constexpr Opcode enable_lam{0xff8};
} // namespace opcode

/* Addresses in this structure are bus addresses: the base of a BAR plus an offset. */
struct QueryFw : Storage<0x100> {
	static constexpr Field fw_pages{0x00, 31, 16};
	static constexpr Field version_major{0x00, 15, 0};
	static constexpr Field version_subminor{0x04, 31, 16};
	static constexpr Field version_minor{0x04, 15, 0};
	static constexpr Field command_revision{0x08, 15, 0};
	static constexpr Field log_max_commands{0x0c, 7, 0};
	static constexpr Field64 clear_interrupt{0x20, 63, 0};
	static constexpr Field64 error_buffer{0x30, 63, 0};
	static constexpr Field error_buffer_size{0x38, 31, 0}; /* dwords */
	static constexpr Field64 eq_arm{0x40, 63, 0};
	static constexpr Field64 eq_ci_table{0x48, 63, 0};
};

/* Bits of QueryDevLim::flags. */
namespace dev_lim_flag
{
inline constexpr uint32_t rc = 1u << 0;
inline constexpr uint32_t uc = 1u << 1;
inline constexpr uint32_t ud = 1u << 2;
inline constexpr uint32_t srq = 1u << 6;
inline constexpr uint32_t ipoib_checksum = 1u << 7;
inline constexpr uint32_t bad_pkey_counter = 1u << 8;
inline constexpr uint32_t bad_qkey_counter = 1u << 9;
inline constexpr uint32_t atomics = 1u << 18;
inline constexpr uint32_t av_port_check = 1u << 20;
inline constexpr uint32_t ud_multicast = 1u << 21;
} // namespace dev_lim_flag

struct QueryDevLim : Storage<0x100> {
	static constexpr Field log_max_srq_size{0x10, 31, 24};
	static constexpr Field log_max_qp_size{0x10, 23, 16};
	static constexpr Field log_reserved_qps{0x10, 11, 8};
	static constexpr Field log_max_qps{0x10, 4, 0};
	static constexpr Field log_reserved_srqs{0x14, 31, 28};
	static constexpr Field log_max_srqs{0x14, 20, 16};
	static constexpr Field log_max_cq_size{0x18, 23, 16};
	static constexpr Field log_reserved_cqs{0x18, 11, 8};
	static constexpr Field log_max_cqs{0x18, 4, 0};
	static constexpr Field log_max_eq_size{0x1c, 31, 24};
	static constexpr Field log_max_mpts{0x1c, 21, 16};
	/* Linux interprets this field as a logarithm, iPXE as a count. 0 is valid for both. */
	static constexpr Field reserved_eqs{0x1c, 11, 8};
	static constexpr Field log_max_eqs{0x1c, 2, 0};
	static constexpr Field log_reserved_mtts{0x20, 31, 28};
	static constexpr Field log_max_mrw_size{0x20, 23, 16};
	static constexpr Field log_reserved_mrws{0x20, 11, 8};
	static constexpr Field log_max_mtts{0x20, 5, 0};
	static constexpr Field log_max_requester_reads{0x28, 21, 16};
	static constexpr Field log_max_responder_reads{0x28, 5, 0};
	static constexpr Field log_max_responder_reads_global{0x2c, 5, 0};
	static constexpr Field local_ack_delay{0x34, 20, 16};
	static constexpr Field max_mtu{0x34, 15, 12};
	static constexpr Field port_width{0x34, 11, 8};
	static constexpr Field max_vls{0x34, 7, 4};
	static constexpr Field num_ports{0x34, 3, 0};
	static constexpr Field log_max_gids{0x38, 3, 0};
	static constexpr Field static_rates{0x3c, 31, 16};
	static constexpr Field log_max_pkeys{0x3c, 3, 0};
	static constexpr Field flags{0x44, 31, 0};
	static constexpr Field reserved_uars{0x48, 31, 28};
	static constexpr Field log_uar_size{0x48, 21, 16}; /* 2^(20 + n) bytes */
	static constexpr Field log_min_page_size{0x48, 7, 0};
	static constexpr Field max_sq_sge{0x50, 23, 16};
	static constexpr Field max_sq_wqe_size{0x50, 15, 0};
	static constexpr Field max_rq_sge{0x54, 23, 16};
	static constexpr Field max_rq_wqe_size{0x54, 15, 0};
	static constexpr Field log_max_qp_mcg{0x60, 23, 16};
	static constexpr Field log_max_mcg{0x60, 7, 0};
	static constexpr Field reserved_pds{0x64, 31, 28};
	static constexpr Field log_max_pds{0x64, 21, 16};
	static constexpr Field eec_entry_size{0x80, 31, 16};
	static constexpr Field qpc_entry_size{0x80, 15, 0};
	static constexpr Field eeec_entry_size{0x84, 31, 16};
	static constexpr Field eqpc_entry_size{0x84, 15, 0};
	static constexpr Field eqc_entry_size{0x88, 31, 16};
	static constexpr Field cqc_entry_size{0x88, 15, 0};
	static constexpr Field srqc_entry_size{0x8c, 31, 16};
	static constexpr Field uar_scratch_entry_size{0x8c, 15, 0};
	static constexpr Field mtt_entry_size{0x90, 31, 16};
	static constexpr Field mpt_entry_size{0x90, 15, 0};
	static constexpr Field64 max_icm_size{0xa0, 63, 0};
};

struct InitHca : Storage<0x200> {
	static constexpr Field flags{0x014, 31, 0};
	static constexpr uint32_t flag_av_port_check = 1u << 0;
	static constexpr uint32_t flag_big_endian_host = 1u << 1;
	static constexpr Field64 qpc_base{0x030, 63, 5};
	static constexpr Field log_qps{0x034, 4, 0};
	static constexpr Field64 eec_base{0x040, 63, 5};
	static constexpr Field64 srqc_base{0x048, 63, 5};
	static constexpr Field log_srqs{0x04c, 4, 0};
	static constexpr Field64 cqc_base{0x050, 63, 5};
	static constexpr Field log_cqs{0x054, 4, 0};
	static constexpr Field64 eqpc_base{0x060, 63, 0};
	static constexpr Field64 eeec_base{0x070, 63, 0};
	static constexpr Field64 eqc_base{0x080, 63, 4};
	static constexpr Field log_eqs{0x084, 3, 0};
	static constexpr Field64 rdb_base{0x090, 63, 0};
	static constexpr Field64 mcg_base{0x0c0, 63, 0};
	static constexpr Field log_mcg_entry_size{0x0d0, 15, 0};
	static constexpr Field mcg_hash_size{0x0d4, 16, 0}; /* entries */
	static constexpr Field log_mcg_size{0x0d8, 4, 0};
	static constexpr Field64 mpt_base{0x0f0, 63, 0};
	static constexpr Field log_mpts{0x0f8, 5, 0};
	static constexpr Field64 mtt_base{0x100, 63, 0};
	static constexpr Field uar_page_size{0x128, 7, 0}; /* minus 12 */
	static constexpr Field log_uars{0x128, 15, 8};
	static constexpr Field log_uarc_pages{0x128, 23, 16};
	static constexpr Field64 uar_scratch_base{0x130, 63, 0};
	static constexpr Field64 uarc_base{0x138, 63, 0};
};

/* The part of INIT_IB that drivers set. */
struct InitIb : Storage<0x38> {
	static constexpr Field system_image_guid_valid{0x00, 18, 18};
	static constexpr Field node_guid_valid{0x00, 17, 17};
	static constexpr Field guid0_valid{0x00, 16, 16};
	static constexpr Field mtu{0x00, 15, 12};
	static constexpr Field width{0x00, 11, 8};
	static constexpr Field vls{0x00, 7, 4};
	static constexpr Field max_gids{0x04, 15, 0};
	static constexpr Field max_pkeys{0x08, 15, 0};
	static constexpr Field64 guid0{0x10, 63, 0};
	static constexpr Field64 node_guid{0x18, 63, 0};
	static constexpr Field64 system_image_guid{0x20, 63, 0};
};

struct SetIb : Storage<0x40> {
	static constexpr Field system_image_guid_valid{0x00, 18, 18};
	static constexpr Field reset_qkey_violations{0x00, 0, 0};
	static constexpr Field capability_mask{0x04, 31, 0};
	static constexpr Field64 system_image_guid{0x08, 63, 0};
};

/* RESIZE_CQ. */
struct ResizeCq : Storage<0x40> {
	static constexpr Field64 start{0x04, 63, 0};
	static constexpr Field log_size{0x0c, 28, 24};
	static constexpr Field lkey{0x1c, 31, 0};
};

/* Operation modifiers of CONF_SPECIAL_QP. One call configures both ports. */
inline constexpr uint32_t special_smi = 0;
inline constexpr uint32_t special_gsi = 1;

/* Operation modifier of 2RST_QP: no output mailbox. */
inline constexpr uint32_t to_rst_no_output = 1;

} // namespace hw::mthca
