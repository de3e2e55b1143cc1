// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines what the commands of the InfiniHost III (mthca) and the ConnectX-2 (mlx4) have in common:
 * the command register, opcodes, status codes, and layouts. (Documentation/connectx.rst, "Command
 * interface")
 */
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mellanox_icm
{

/* The command register (HCR) in BAR 0, and the offsets of its fields. */
namespace hcr
{
inline constexpr size_t at = 0x80680;
inline constexpr size_t size = 0x1c;
inline constexpr size_t in_param = 0x00;
inline constexpr size_t in_modifier = 0x08;
inline constexpr size_t out_param = 0x0c;
inline constexpr Field token{0x14, 31, 16};
inline constexpr size_t control = 0x18;
inline constexpr Field status{0x18, 31, 24};
inline constexpr Field go{0x18, 23, 23};
inline constexpr Field event{0x18, 22, 22};
inline constexpr Field toggle{0x18, 21, 21}; /* ConnectX only; the InfiniHosts have only GO */
inline constexpr Field op_modifier{0x18, 15, 12};
inline constexpr Field opcode{0x18, 11, 0};
} // namespace hcr

enum class Opcode : uint16_t {
	query_dev_cap = 0x003,
	query_fw = 0x004,
	query_adapter = 0x006,
	init_hca = 0x007,
	close_hca = 0x008,
	init_port = 0x009,
	close_port = 0x00a,
	query_hca = 0x00b,
	set_port = 0x00c,
	sw2hw_mpt = 0x00d,
	query_mpt = 0x00e,
	hw2sw_mpt = 0x00f,
	read_mtt = 0x010,
	write_mtt = 0x011,
	map_eq = 0x012,
	sw2hw_eq = 0x013,
	hw2sw_eq = 0x014,
	query_eq = 0x015,
	sw2hw_cq = 0x016,
	hw2sw_cq = 0x017,
	query_cq = 0x018,
	rst2init_qp = 0x019,
	init2rtr_qp = 0x01a,
	rtr2rts_qp = 0x01b,
	rts2rts_qp = 0x01c,
	sqerr2rts_qp = 0x01d,
	to_err_qp = 0x01e,
	rts2sqd_qp = 0x01f,
	sqd2rts_qp = 0x020,
	to_rst_qp = 0x021,
	query_qp = 0x022,
	conf_special_qp = 0x023,
	mad_ifc = 0x024,
	read_mcg = 0x025,
	write_mcg = 0x026,
	mgid_hash = 0x027,
	modify_cq = 0x02c,
	init2init_qp = 0x02d,
	sync_tpt = 0x02f,
	diag_rprt = 0x030,
	nop = 0x031,
	mod_stat_cfg = 0x034,
	sw2hw_srq = 0x035,
	hw2sw_srq = 0x036,
	query_srq = 0x037,
	sqd2sqd_qp = 0x038,
	arm_srq = 0x040,
	query_port = 0x043,
	sense_port = 0x04d,
	set_node = 0x05a,
	run_fw = 0xff6,
	unmap_icm = 0xff9,
	map_icm = 0xffa,
	unmap_icm_aux = 0xffb,
	map_icm_aux = 0xffc,
	set_icm_size = 0xffd,
	unmap_fa = 0xffe,
	map_fa = 0xfff,
};

enum class Status : uint8_t {
	ok = 0x00,
	internal_error = 0x01,
	bad_opcode = 0x02,
	bad_parameter = 0x03,
	bad_system_state = 0x04,
	bad_resource = 0x05,
	resource_busy = 0x06,
	exceeds_limit = 0x08,
	bad_resource_state = 0x09,
	bad_index = 0x0a,
	bad_nvmem = 0x0b,
	icm_error = 0x0c,
	bad_qp_state = 0x10,
	bad_segment = 0x20,
	region_bound = 0x21,
	no_local_memory = 0x22,
	bad_packet = 0x30,
	bad_size = 0x40,
};

inline constexpr size_t mailbox_alignment = 4096;
inline constexpr size_t mailbox_max = 4096;

/*
 * A contiguous block of host memory that is given to the card: 16 bytes, an array in the mailbox.
 */
struct PageMapping : Storage<16> {
	static constexpr Field64 virtual_address{0x00, 63, 12};
	static constexpr Field64 bus_address{0x08, 63, 12};
	static constexpr Field log_pages{0x0c, 5, 0};
};

/* An entry of a page list. */
struct MttEntry {
	static constexpr size_t size = 8;
	static constexpr uint64_t present = 1;
	static constexpr uint64_t address_mask = ~uint64_t{7};
};

/*
 * MAD_IFC. The input mailbox contains the MAD and, with op_extended, information about its
 * reception.
 */
struct MadIfc {
	static constexpr Field in_modifier_port{0x00, 7, 0};
	static constexpr Field in_modifier_slid{0x00, 31, 16};
	static constexpr uint32_t op_ignore_mkey = 1u << 0;
	static constexpr uint32_t op_ignore_bkey = 1u << 1;
	static constexpr uint32_t op_extended = 1u << 2;
	static constexpr uint32_t op_network_view = 1u << 3;
	static constexpr size_t mad_size = 256;
	static constexpr size_t in_size = 0x168;
	static constexpr Field my_qpn{0x100, 23, 0};
	static constexpr Field remote_qpn{0x108, 23, 0};
	static constexpr Field sl{0x10c, 31, 28};
	static constexpr Field grh_present{0x10c, 23, 23};
	static constexpr Field path_bits{0x10c, 22, 16};
	static constexpr Field pkey_index{0x110, 15, 0};
};

struct QueryAdapter : Storage<0x100> {
	static constexpr Field interrupt_pin{0x10, 31, 24};
	static constexpr size_t vsd = 0x20;
	static constexpr size_t vsd_size = 0xd0;
	/* Sixteen characters; the four characters of each dword are in reverse order. */
	static constexpr size_t board_id = 0xf0;
	static constexpr size_t board_id_size = 16;
};

/* Fields of MAP_EQ's input modifier. */
inline constexpr Field map_eq_unmap{0x00, 31, 31};
inline constexpr Field map_eq_eqn{0x00, 9, 0};

/* Bit of RTS2SQD_QP's input modifier: request an event. */
inline constexpr uint32_t sqd_event = 1u << 31;

} // namespace hw::mellanox_icm
