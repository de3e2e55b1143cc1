// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines flow tables, with which the card selects the transport interface that receives a packet.
 * Offsets are from the start of a command's input, or from the start of the context in it.
 * (Documentation/mlx5.rst, "Enhanced IPoIB")
 */
#pragma once

#include <hw/mlx5/commands.hpp>

namespace hw::mlx5
{

/* Fields of all these commands. */
namespace flow
{
constexpr Field other_vport{0x08, 31, 31};
constexpr Field table_type{0x10, 31, 24};
constexpr std::uint32_t receive = 0; /* the only value of table_type */
constexpr Field table{0x14, 23, 0};
constexpr Field index{0x20, 31, 0};
constexpr std::size_t command_size = 0x40;
} // namespace flow

/* CREATE and MODIFY_FLOW_TABLE. */
struct FlowTableContext {
	static constexpr std::size_t offset = 0x18;
	static constexpr Field reformat{0x00, 31, 30};
	static constexpr Field software_owner{0x00, 29, 29};
	static constexpr Field termination{0x00, 28, 28};
	static constexpr Field miss_action{0x00, 27, 24};
	static constexpr Field level{0x00, 23, 16};
	static constexpr Field log_size{0x00, 7, 0};
	static constexpr Field miss_table{0x04, 23, 0};
	/* Values of miss_action. */
	static constexpr std::uint32_t miss_default = 0;
	static constexpr std::uint32_t miss_forward = 1;
	/* MODIFY_FLOW_TABLE: which fields it changes. */
	static constexpr Field selected{0x0c, 15, 0};
	static constexpr std::uint32_t select_miss = 1;
};

struct FlowTableRoot {
	static constexpr std::uint32_t op_connect = 0;
	static constexpr std::uint32_t op_disconnect = 1;
	static constexpr Field underlay_qpn{0x18, 23, 0};
};

/* CREATE and DESTROY_FLOW_GROUP: a range of entries that match the same header fields. */
struct FlowGroup {
	static constexpr std::size_t size = 0x400;
	static constexpr Field number{0x18, 23, 0}; /* in the input of DESTROY */
	static constexpr Field first{0x1c, 31, 0};
	static constexpr Field last{0x24, 31, 0};
	static constexpr Field definer{0x28, 15, 0};
	static constexpr Field criteria{0x3c, 7, 0};
	static constexpr std::uint32_t outer_headers = 1;
	static constexpr std::size_t mask = 0x40;
	static constexpr std::size_t mask_size = 0x200;
};

struct FlowEntry {
	static constexpr std::uint32_t op_set = 0;
	static constexpr std::uint32_t op_modify = 1;
	static constexpr Field selected{0x18, 7, 0};
	static constexpr std::uint32_t select_action = 1;
	static constexpr std::uint32_t select_tag = 2;
	static constexpr std::uint32_t select_destinations = 4;
	static constexpr Field group{0x44, 31, 0};
	static constexpr Field action{0x4c, 15, 0};
	static constexpr Field extended{0x50, 31, 31};
	static constexpr Field destinations{0x50, 23, 0};
	static constexpr Field counters{0x54, 23, 0};
	static constexpr std::size_t value = 0x80;
	static constexpr std::size_t list = 0x340; /* the destinations, 8 bytes each */
	/* Values of action. */
	static constexpr std::uint32_t allow = 1;
	static constexpr std::uint32_t drop = 2;
	static constexpr std::uint32_t forward = 4;
	/* An entry of the list of destinations. */
	static constexpr Field destination_kind{0x00, 31, 24};
	static constexpr Field destination{0x00, 23, 0};
	static constexpr std::uint32_t to_table = 1;
	static constexpr std::uint32_t to_tir = 2;
};

/* The outer headers' fields, in masks and values. */
struct FlowHeaders : Storage<0x40> {
	static constexpr Field ethertype{0x04, 15, 0};
	static constexpr Field protocol{0x10, 31, 24};
	static constexpr Field dscp{0x10, 23, 18};
	static constexpr Field ecn{0x10, 17, 16};
	static constexpr Field fragment{0x10, 13, 13};
	static constexpr Field ip_version{0x10, 12, 9};
	static constexpr Field tcp_flags{0x10, 8, 0};
	static constexpr Field tcp_source{0x14, 31, 16};
	static constexpr Field tcp_destination{0x14, 15, 0};
	static constexpr Field ip_header_words{0x18, 15, 12};
	static constexpr Field hop_limit{0x18, 7, 0};
	static constexpr Field udp_source{0x1c, 31, 16};
	static constexpr Field udp_destination{0x1c, 15, 0};
	/* Addresses of 16 bytes each; an IPv4 address is in the last four. */
	static constexpr std::size_t source = 0x20;
	static constexpr std::size_t destination = 0x30;
	static constexpr std::size_t address_size = 16;
};

} // namespace hw::mlx5
