// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the command interface of the ConnectX-5: entries of the command queue, mailbox blocks,
 * opcodes, statuses, and the layouts of commands that do not carry an object's context. Offsets are
 * from the start of a command's input or output, including the header. (Documentation/mlx5.rst,
 * "Commands")
 */
#pragma once

#include <hw/mlx5/registers.hpp>

namespace hw::mlx5
{

/* An entry of the command queue. */
struct CommandEntry : Storage<64> {
	static constexpr Field type{0x00, 31, 24};
	static constexpr std::uint32_t type_pci = 7;
	static constexpr Field input_length{0x04, 31, 0};
	static constexpr Field64 input_block{0x08, 63, 0};
	static constexpr std::size_t inline_input = 0x10;
	static constexpr std::size_t inline_output = 0x20;
	static constexpr std::size_t inline_size = 16;
	static constexpr Field64 output_block{0x30, 63, 0};
	static constexpr Field output_length{0x38, 31, 0};
	static constexpr Field token{0x3c, 31, 24};
	/* status in bits 7..1, owner in bit 0: 1 for the card */
	static constexpr std::size_t status_byte = 0x3f;
	static constexpr std::uint8_t owner_card = 1;
};

/* A block of an input or output that does not fit into the entry. */
struct CommandBlock : Storage<576> {
	static constexpr std::size_t data_size = 512;
	static constexpr std::uint64_t alignment = 512;
	static constexpr Field64 next{0x230, 63, 0};
	static constexpr Field number{0x238, 31, 0};
	static constexpr Field token{0x23c, 23, 16};
};

/* The delivery status: whether the card could execute the command, and if not, why. */
enum class Delivery : std::uint8_t {
	ok = 0,
	bad_token = 2,
	bad_block_number = 3,
	bad_output_pointer = 4,
	bad_input_pointer = 5,
	firmware_error = 6,
	bad_input_length = 7,
	bad_output_length = 8,
	bad_type = 0x10,
};

enum class Status : std::uint8_t {
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
	no_resources = 0x0f,
	bad_qp_state = 0x10,
	bad_packet = 0x30,
	bad_size = 0x40,
	bad_input_length = 0x50,
	bad_output_length = 0x51,
};

enum class Opcode : std::uint16_t {
	query_hca_cap = 0x100,
	query_adapter = 0x101,
	init_hca = 0x102,
	teardown_hca = 0x103,
	enable_hca = 0x104,
	disable_hca = 0x105,
	query_pages = 0x107,
	manage_pages = 0x108,
	set_hca_cap = 0x109,
	query_issi = 0x10a,
	set_issi = 0x10b,
	set_driver_version = 0x10d,
	create_mkey = 0x200,
	query_mkey = 0x201,
	destroy_mkey = 0x202,
	query_special_contexts = 0x203,
	create_eq = 0x301,
	destroy_eq = 0x302,
	query_eq = 0x303,
	create_cq = 0x400,
	destroy_cq = 0x401,
	query_cq = 0x402,
	modify_cq = 0x403,
	create_qp = 0x500,
	destroy_qp = 0x501,
	rst2init_qp = 0x502,
	init2rtr_qp = 0x503,
	rtr2rts_qp = 0x504,
	rts2rts_qp = 0x505,
	sqerr2rts_qp = 0x506,
	to_err_qp = 0x507,
	to_rst_qp = 0x50a,
	query_qp = 0x50b,
	sqd2rts_qp = 0x50c,
	mad_ifc = 0x50d,
	init2init_qp = 0x50e,
	create_xrc_srq = 0x705,
	destroy_xrc_srq = 0x706,
	query_xrc_srq = 0x707,
	arm_xrc_srq = 0x708,
	query_hca_vport_context = 0x762,
	query_hca_vport_gid = 0x764,
	query_hca_vport_pkey = 0x765,
	query_vport_counter = 0x770,
	alloc_q_counter = 0x771,
	dealloc_q_counter = 0x772,
	query_q_counter = 0x773,
	alloc_pd = 0x800,
	dealloc_pd = 0x801,
	alloc_uar = 0x802,
	dealloc_uar = 0x803,
	access_register = 0x805,
	attach_to_mcg = 0x806,
	detach_from_mcg = 0x807,
	nop = 0x80d,
	alloc_xrcd = 0x80e,
	dealloc_xrcd = 0x80f,
	alloc_transport_domain = 0x816,
	dealloc_transport_domain = 0x817,
	create_tir = 0x900,
	modify_tir = 0x901,
	destroy_tir = 0x902,
	create_sq = 0x904,
	modify_sq = 0x905,
	destroy_sq = 0x906,
	query_sq = 0x907,
	create_rq = 0x908,
	modify_rq = 0x909,
	destroy_rq = 0x90a,
	query_rq = 0x90b,
	create_rmp = 0x90c,
	modify_rmp = 0x90d,
	destroy_rmp = 0x90e,
	query_rmp = 0x90f,
	create_tis = 0x912,
	destroy_tis = 0x914,
	create_rqt = 0x916,
	modify_rqt = 0x917,
	destroy_rqt = 0x918,
	set_flow_table_root = 0x92f,
	create_flow_table = 0x930,
	destroy_flow_table = 0x931,
	create_flow_group = 0x933,
	destroy_flow_group = 0x934,
	set_flow_table_entry = 0x936,
	delete_flow_table_entry = 0x938,
	modify_flow_table = 0x93c,
};

/* The headers of all inputs and outputs. */
struct InputHead : Storage<8> {
	static constexpr Field opcode{0x00, 31, 16};
	static constexpr Field op_modifier{0x04, 15, 0};
};
struct OutputHead : Storage<8> {
	static constexpr Field status{0x00, 31, 24};
	static constexpr Field syndrome{0x04, 31, 0};
};

/*
 * The number of an object, in the input of its DESTROY and QUERY commands and in the output of
 * CREATE.
 */
constexpr Field object_number{0x08, 23, 0};
constexpr Field event_queue_number{0x08, 7, 0};
/* Offsets of the context and of the page list in the input of most CREATE commands. */
constexpr std::size_t context_offset = 0x10;
constexpr std::size_t pages_offset = 0x110;

struct QueryIssi {
	static constexpr std::size_t size = 0x70;
	static constexpr Field current{0x08, 15, 0};
	static constexpr Field supported{0x6c, 31, 0};
};

struct ManagePages {
	/* in QUERY_PAGES' output and MANAGE_PAGES' input */
	static constexpr Field count{0x0c, 31, 0};
	static constexpr Field count_out{0x08, 31, 0}; /* in MANAGE_PAGES' output */
	static constexpr std::uint32_t op_cannot_give = 0;
	static constexpr std::uint32_t op_give = 1;
	static constexpr std::uint32_t op_take = 2;
};

/*
 * op_modifier of QUERY_HCA_CAP: twice the kind for the maximum values, plus 1 for the current ones.
 */
struct HcaCap {
	static constexpr std::size_t offset = 0x10;
	static constexpr std::size_t size = 0x1000;
	static constexpr std::size_t least = 0x100; // bytes that a driver may request instead
	static constexpr std::uint32_t kind_general = 0;
	static constexpr std::uint32_t kind_atomic = 3;
	static constexpr std::uint32_t kind_enhanced_ipoib = 6;
	static constexpr std::uint32_t kind_flow_tables = 7;
};

struct QueryAdapter {
	static constexpr std::size_t size = 0x110;
	static constexpr Field vendor_id{0x28, 23, 0};
	static constexpr std::size_t board_id = 0x100;
	static constexpr std::size_t board_id_size = 16;
};

struct MadIfc {
	static constexpr std::size_t size = 0x110;
	static constexpr Field remote_lid{0x08, 31, 16};
	static constexpr Field port{0x08, 7, 0};
	static constexpr std::size_t mad = 0x10;
	static constexpr std::uint32_t op_ignore_mkey = 1;
};

struct AccessRegister {
	static constexpr std::uint32_t op_write = 0;
	static constexpr std::uint32_t op_read = 1;
	static constexpr Field number{0x08, 15, 0};
	static constexpr std::size_t data = 0x10;

	static constexpr std::uint32_t host_endianness = 0x7004;
	static constexpr std::uint32_t node_description = 0x6001;
	static constexpr std::size_t node_description_size = 64;
	static constexpr std::uint32_t port_capabilities = 0x5001;
	static constexpr std::uint32_t port_mtu = 0x5003;
	static constexpr std::uint32_t port_speed = 0x5004;
	static constexpr std::uint32_t port_counters = 0x5008;
	/* Layouts of the registers. Offsets are from the start of the register's data. */
	static constexpr Field port{0x00, 23, 16};
	static constexpr std::size_t port_size = 4; /* of the dword with the port */
	static constexpr Field pcap_port{0x00, 23, 16};
	static constexpr Field pcap_mask{0x04, 31, 0};
	static constexpr std::size_t pcap_size = 20;
	static constexpr std::size_t mtu_size = 0x10;
	static constexpr Field mtu_most{0x04, 31, 16};
	static constexpr Field mtu_wanted{0x08, 31, 16};
	static constexpr Field mtu_used{0x0c, 31, 16};
	static constexpr std::size_t speed_size = 0x40;
	static constexpr Field speed_protocols{0x00, 2, 0};
	static constexpr std::uint32_t speed_infiniband = 1;
	static constexpr Field widths_possible{0x10, 31, 16};
	static constexpr Field speeds_possible{0x10, 15, 0};
	static constexpr Field widths_wanted{0x1c, 31, 16};
	static constexpr Field speeds_wanted{0x1c, 15, 0};
	static constexpr Field width{0x28, 31, 16};
	static constexpr Field speed{0x28, 15, 0};
	static constexpr std::size_t counters_size = 0x100;
	static constexpr Field counters_group{0x00, 5, 0};
	static constexpr std::uint32_t group_ieee_802_3 = 0;
	static constexpr Field64 frames_sent{0x08, 63, 0};
	static constexpr Field64 frames_received{0x10, 63, 0};
	static constexpr Field64 octets_sent{0x28, 63, 0};
	static constexpr Field64 octets_received{0x30, 63, 0};
};

/* QUERY_VPORT_COUNTER: offsets of the packet counters. A counter of octets follows each of them. */
struct VportCounter {
	static constexpr std::size_t in_size = 0x20;
	static constexpr std::size_t size = 0x210;
	static constexpr Field port{0x08, 19, 16};
	static constexpr std::size_t octets = 8;
	static constexpr std::size_t unicast_received = 0x30;
	static constexpr std::size_t unicast_sent = 0x40;
	static constexpr std::size_t multicast_received = 0x50;
	static constexpr std::size_t multicast_sent = 0x60;
};

struct McgMember {
	static constexpr Field qpn{0x08, 23, 0};
	static constexpr std::size_t gid = 0x10;
	static constexpr std::size_t size = 0x20;
};

/* QUERY_HCA_VPORT_CONTEXT. Offsets are from the start of the output. */
struct VportContext {
	/*
	 * In the input of QUERY_HCA_VPORT_CONTEXT, _GID and _PKEY: the port. 0 means port 1 if
	 * there is only one.
	 */
	static constexpr Field port_in{0x08, 19, 16};
	static constexpr std::size_t size = 0x210;
	static constexpr std::size_t least = 0xe0; /* bytes that a driver may request instead */
	static constexpr Field grh_required{0x30, 28, 28};
	static constexpr Field has_smi{0x30, 30, 30};
	static constexpr Field phys_state{0x30, 15, 12};
	static constexpr Field port_state{0x30, 7, 4};
	static constexpr Field vport_state{0x30, 3, 0};
	static constexpr Field64 system_image_guid{0x38, 63, 0};
	static constexpr Field64 port_guid{0x40, 63, 0};
	static constexpr Field64 node_guid{0x48, 63, 0};
	static constexpr Field capability_mask{0x50, 31, 0};
	static constexpr Field lid{0x70, 31, 16};
	static constexpr Field lmc{0x70, 7, 5};
	static constexpr Field subnet_timeout{0x70, 4, 0};
	static constexpr Field sm_lid{0x74, 31, 16};
	static constexpr Field sm_sl{0x74, 15, 12};
	static constexpr Field qkey_violations{0x78, 31, 16};
	static constexpr Field pkey_violations{0x78, 15, 0};
};

/* QUERY_HCA_VPORT_GID and QUERY_HCA_VPORT_PKEY. */
struct VportTable {
	static constexpr Field index{0x0c, 15, 0};
	static constexpr std::uint32_t all = 0xffff;
	static constexpr Field gid_count{0x0c, 31, 16};
	static constexpr std::size_t entries = 0x10;
};

} // namespace hw::mlx5
