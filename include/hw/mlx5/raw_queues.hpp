// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the contexts of send and receive queues without a queue pair (SQ, RQ), of tables of
 * receive queues (RQT), and of transport interfaces (TIS, TIR). Offsets are from the start of the
 * context. (Documentation/mlx5.rst, "Enhanced IPoIB")
 */
#pragma once

#include <hw/mlx5/contexts.hpp>

namespace hw::mlx5
{

/* Offsets in the inputs and outputs of all commands for these objects. */
namespace raw_command
{
constexpr std::size_t context = 0x20;
constexpr std::size_t pages = 0x110; /* the page list of a queue; the entries of an RQT */
constexpr std::size_t size = 0x110;
constexpr std::size_t tis_size = 0xc0;
constexpr Field current_state{0x08, 31, 28}; /* the state that MODIFY_SQ and MODIFY_RQ expect */
constexpr Field bitmask_low{0x14, 31, 0};    /* MODIFY_TIR and MODIFY_RQT */
constexpr std::uint32_t rqt_set_list = 1u << 0;
constexpr std::uint32_t tir_set_merge = 1u << 0;
constexpr std::uint32_t tir_set_hash = 1u << 2;
constexpr std::uint32_t tir_set_loopback = 1u << 4;
} // namespace raw_command

/* The states of an SQ or RQ. */
enum class RawState : std::uint8_t { reset = 0, ready = 1, error = 3 };

struct RqContext : Storage<0xf0> {
	static constexpr Field scatter_fcs{0x00, 29, 29};
	/* 0: the queue has its own memory, not an RMP's */
	static constexpr Field memory_type{0x00, 27, 24};
	static constexpr Field state{0x00, 23, 20};
	static constexpr Field flush_in_error{0x00, 18, 18};
	static constexpr Field hairpin{0x00, 17, 17};
	static constexpr Field user_index{0x04, 23, 0};
	static constexpr Field cqn{0x08, 23, 0};
	static constexpr Field counter_set{0x0c, 31, 24};
	static constexpr std::size_t work_queue = 0x30;
};

struct SqContext : Storage<0xf0> {
	static constexpr Field flush_in_error{0x00, 28, 28};
	static constexpr Field state{0x00, 23, 20};
	static constexpr Field hairpin{0x00, 17, 17};
	static constexpr Field user_index{0x04, 23, 0};
	static constexpr Field cqn{0x08, 23, 0};
	static constexpr Field tis_count{0x20, 31, 16};
	static constexpr Field tis{0x2c, 23, 0};
	static constexpr std::size_t work_queue = 0x30;
};

struct TisContext : Storage<0xa0> {
	static constexpr Field tls{0x00, 30, 30};
	static constexpr Field transport_domain{0x24, 23, 0};
	static constexpr Field underlay_qpn{0x28, 23, 0};
};

struct TirContext : Storage<0xf0> {
	static constexpr Field kind{0x04, 31, 28};
	static constexpr Field tls{0x04, 27, 27};
	static constexpr Field merge_mask{0x10, 11, 8};
	static constexpr Field rqn{0x1c, 23, 0};
	static constexpr Field symmetric{0x20, 31, 31};
	static constexpr Field rqt{0x20, 23, 0};
	static constexpr Field hash{0x24, 31, 28};
	static constexpr Field block_loopback{0x24, 25, 24};
	static constexpr Field transport_domain{0x24, 23, 0};
	static constexpr std::size_t key = 0x28;
	static constexpr std::size_t key_size = 40;
	static constexpr Field ipv6{0x50, 31, 31}; /* 0: IPv4 */
	static constexpr Field udp{0x50, 30, 30};  /* 0: TCP */
	static constexpr Field selected{0x50, 29, 0};
	/* Values of kind. */
	static constexpr std::uint32_t direct = 0;
	static constexpr std::uint32_t indirect = 1;
	/* Bits of selected. */
	static constexpr std::uint32_t source_address = 1;
	static constexpr std::uint32_t destination_address = 2;
	static constexpr std::uint32_t source_port = 4;
	static constexpr std::uint32_t destination_port = 8;
};
enum class HashFunction : std::uint8_t { none = 0, inverted_xor8 = 1, toeplitz = 2 };

struct RqtContext : Storage<0xf0> {
	static constexpr Field kind{0x14, 26, 24}; /* 0: its entries are RQs */
	static constexpr Field most{0x14, 15, 0};
	static constexpr Field size{0x18, 15, 0};
};

/* ALLOC, DEALLOC and QUERY_Q_COUNTER. */
struct CounterSet {
	static constexpr Field number{0x08, 7, 0};
	static constexpr Field clear{0x18, 31, 31};
	static constexpr Field queried{0x1c, 7, 0};
	static constexpr std::size_t query_size = 0x20;
	static constexpr std::size_t size = 0x100;
	static constexpr Field out_of_buffer{0x30, 31, 0};
};

} // namespace hw::mlx5
