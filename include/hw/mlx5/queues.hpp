// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the entries of the ConnectX-5's queues: send and receive requests (WQEs), completions
 * (CQEs) and events (EQEs). Segments and opcodes that are the same as on the older cards are in
 * hw/mellanox_icm/wqe.hpp. (Documentation/mlx5.rst, "Send requests", "Completions", "Events")
 */
#pragma once

#include <hw/mellanox_icm/wqe.hpp>
#include <hw/mlx5/contexts.hpp>

namespace hw::mlx5
{

using ib::be16;
using ib::be32;
using ib::be64;
using mellanox_icm::WqeData;
using mellanox_icm::wqe_bytes_max;
using mellanox_icm::wqe_unit;

/* The unit of the send queue's index, in bytes. */
constexpr unsigned send_block = 64;
constexpr std::uint8_t opcode_umr = 0x25;

struct WqeControl : Storage<16> {
	static constexpr Field op_modifier{0x00, 31, 24};
	static constexpr Field index{0x00, 23, 8};
	static constexpr Field opcode{0x00, 7, 0};
	static constexpr Field qpn{0x04, 31, 8};
	static constexpr Field units{0x04, 5, 0};
	static constexpr Field fence{0x08, 7, 5};
	static constexpr Field completion{0x08, 3, 2};
	static constexpr Field solicited{0x08, 1, 1};
	static constexpr Field immediate{0x0c, 31, 0};
	/* values of `completion` from this on: a completion also after success */
	static constexpr std::uint32_t always = 2;
	/*
	 * op_modifier of a masked atomic: 8, plus the binary logarithm of the operands' size in
	 * bytes, minus 2.
	 */
	static constexpr std::uint32_t masked_8_bytes = 9;
};

struct WqeXrc {
	be32 srqn;
	std::uint8_t reserved[12];
};
static_assert(sizeof(WqeXrc) == 16);

struct WqeDatagram : Storage<48> {
	static constexpr Field qkey{0x00, 31, 0};
	static constexpr Field extended{0x08, 31, 31};
	static constexpr Field qpn{0x08, 23, 0};
	static constexpr Field static_rate{0x0c, 31, 28};
	static constexpr Field sl{0x0c, 27, 24};
	static constexpr Field force_loopback{0x0c, 23, 23};
	static constexpr Field path_bits{0x0c, 22, 16};
	static constexpr Field dlid{0x0c, 15, 0};
	static constexpr Field traffic_class{0x18, 15, 8};
	static constexpr Field hop_limit{0x18, 7, 0};
	static constexpr Field grh{0x1c, 30, 30};
	static constexpr Field sgid_index{0x1c, 27, 20};
	static constexpr Field flow_label{0x1c, 19, 0};
	static constexpr std::size_t dgid = 0x20;
};

/*
 * The segment after the datagram segment of a queue pair with IPoIB offloads: 16 unused bytes, then
 * the offloads. The header that is repeated in each packet of a large send starts in the last two
 * bytes.
 */
struct WqeOffload : Storage<32> {
	static constexpr Field l4_checksum{0x14, 31, 31};
	static constexpr Field l3_checksum{0x14, 30, 30};
	static constexpr Field mss{0x14, 15, 0};
	static constexpr Field header_size{0x1c, 31, 16};
	static constexpr std::size_t header = 0x1e;
};

/* The segment after the control segment of a UMR. The context of a key and a list follow it. */
struct WqeUmr : Storage<48> {
	static constexpr Field inline_list{0x00, 31, 31};
	static constexpr Field fail_unless_free{0x00, 29, 29};
	static constexpr Field fail_if_free{0x00, 30, 30};
	static constexpr Field has_offset{0x00, 28, 28};
	static constexpr Field octwords{0x04, 31, 16};
	static constexpr Field offset_low{0x04, 15, 0};
	static constexpr Field64 mask{0x08, 63, 0};
	static constexpr Field offset_high{0x10, 31, 0};
};
/* Bits of WqeUmr::mask: the fields of the key that the UMR changes. */
namespace umr
{
constexpr std::uint64_t length = 1ull << 0;
constexpr std::uint64_t page_size = 1ull << 1;
constexpr std::uint64_t start = 1ull << 6;
constexpr std::uint64_t pd = 1ull << 7;
constexpr std::uint64_t remote_invalidate = 1ull << 8;
constexpr std::uint64_t variant = 1ull << 13;
constexpr std::uint64_t qpn = 1ull << 14;
constexpr std::uint64_t local_read = 1ull << 17;
constexpr std::uint64_t local_write = 1ull << 18;
constexpr std::uint64_t remote_read = 1ull << 19;
constexpr std::uint64_t remote_write = 1ull << 20;
constexpr std::uint64_t atomic = 1ull << 21;
constexpr std::uint64_t free = 1ull << 29;
} // namespace umr

/* The start of an entry of a shared receive queue; data segments follow. */
struct SrqNext {
	be16 reserved;
	be16 next_index;
	std::uint8_t rest[12];
};
static_assert(sizeof(SrqNext) == 16);

struct Cqe : Storage<64> {
	static constexpr Field hash{0x0c, 31, 0};
	static constexpr Field hash_kind{0x10, 31, 24};
	static constexpr Field path_bits{0x10, 22, 16};
	static constexpr Field checksum{0x14, 31, 16};
	static constexpr Field source_lid{0x14, 15, 0};
	static constexpr Field grh{0x18, 29, 28};
	static constexpr Field sl{0x18, 27, 24};
	static constexpr Field source_qpn{0x18, 23, 0};
	static constexpr Field l3_ok{0x1c, 25, 25};
	static constexpr Field l4_ok{0x1c, 26, 26};
	static constexpr Field srqn{0x20, 23, 0}; /* the SRQ number, or the user index */
	static constexpr Field immediate{0x24, 31, 0};
	static constexpr Field pkey{0x24, 15, 0};
	static constexpr Field byte_count{0x2c, 31, 0};
	static constexpr Field64 timestamp{0x30, 63, 0};
	static constexpr Field syndrome{0x34, 7, 0}; /* the cause of an error */
	static constexpr Field wqe_opcode{0x38, 31, 24};
	static constexpr Field qpn{0x38, 23, 0};
	static constexpr Field wqe_counter{0x3c, 31, 16};
	static constexpr Field opcode{0x3c, 7, 4};
	static constexpr Field format{0x3c, 3, 2};
	static constexpr Field solicited{0x3c, 1, 1};
	static constexpr Field owner{0x3c, 0, 0};

	static constexpr std::uint32_t grh_in_buffer = 1;
	/* Bits of hash_kind: the protocols whose headers were hashed. */
	static constexpr std::uint32_t hash_ipv4 = 1u << 2;
	static constexpr std::uint32_t hash_ipv6 = 2u << 2;
	static constexpr std::uint32_t hash_tcp = 1u << 6;
	static constexpr std::uint32_t hash_udp = 2u << 6;
	/*
	 * Values of format: the message's data is in the first half of the entry, or of a slot of
	 * 128 bytes.
	 */
	static constexpr std::uint32_t inline_32 = 1;
	static constexpr std::uint32_t inline_64 = 2;
	static constexpr std::size_t inline_size = 32;
	/* format: the first of byte_count compressed completions. */
	static constexpr std::uint32_t compressed = 3;
};
/*
 * What a compressed completion has of its own; all else is that of the first, the title. A slot
 * contains the mini CQEs of eight completions. The slot behind the title has the first eight, and
 * each further eight are in the slot that the first of them would have had.
 */
struct MiniCqe : Storage<8> {
	static constexpr Field hash{0x00, 31, 0};         /* of a responder, by mini_format */
	static constexpr Field checksum{0x00, 31, 16};    /* of a responder, by mini_format */
	static constexpr Field wqe_counter{0x00, 31, 16}; /* of a requester */
	static constexpr Field wqe_opcode{0x00, 15, 8};   /* of a requester */
	static constexpr Field byte_count{0x04, 31, 0};
	static constexpr unsigned per_slot = 8;
};
enum class CqeOpcode : std::uint8_t {
	requester = 0x0,
	responder_write_imm = 0x1,
	responder_send = 0x2,
	responder_send_imm = 0x3,
	responder_send_invalidate = 0x4,
	resize = 0x5,
	requester_error = 0xd,
	responder_error = 0xe,
};

struct Eqe : Storage<64> {
	static constexpr Field type{0x00, 23, 16};
	static constexpr Field subtype{0x00, 7, 0};
	static constexpr Field cq_error_number{0x20, 23, 0};
	static constexpr Field commands{0x20, 31, 0};
	static constexpr Field port{0x28, 31, 28};
	static constexpr Field cq_error_syndrome{0x28, 7, 0};
	static constexpr Field kind{0x34, 31, 24}; /* the kind of the object with this number */
	static constexpr Field number{0x38, 23, 0};
	static constexpr Field owner{0x3c, 0, 0};
	static constexpr std::uint32_t cq_overrun = 1;
	static constexpr std::uint32_t cq_access_violation = 2;
};
enum class EventType : std::uint8_t {
	completion = 0x00,
	communication_established = 0x02,
	sq_drained = 0x03,
	cq_error = 0x04,
	wq_catastrophic = 0x05,
	internal_error = 0x08,
	port_change = 0x09,
	command_done = 0x0a,
	page_request = 0x0b,
	wq_invalid_request = 0x10,
	wq_access_violation = 0x11,
	srq_catastrophic = 0x12,
	srq_last_wqe = 0x13,
	srq_limit = 0x14,
};
namespace port_change
{
constexpr std::uint32_t down = 1;
constexpr std::uint32_t active = 4;
constexpr std::uint32_t initialized = 5;
constexpr std::uint32_t lid = 6;
constexpr std::uint32_t pkey = 7;
constexpr std::uint32_t guid = 8;
constexpr std::uint32_t client_reregister = 9;
} // namespace port_change

} // namespace hw::mlx5
