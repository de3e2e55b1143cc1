// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A send work queue entry, decoded and checked. The WQE is guest memory: nothing of it is believed
 * before it is copied, and nothing is read twice.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hw/connectx/contexts.hpp>
#include <hw/connectx/cqe.hpp>
#include <hw/connectx/wqe.hpp>

namespace weft::connectx::transport
{

/* One piece of the data of a request: guest memory, or bytes that lay in the WQE itself. */
struct Piece {
	std::uint64_t address;
	std::uint32_t lkey;
	std::uint32_t length;
	/* The address is an offset into SendRequest::inline_data and there is no key. */
	bool is_inline;
};

struct SendRequest {
	hw::connectx::WqeOpcode opcode = hw::connectx::WqeOpcode::nop;
	bool signalled = false;
	bool solicited = false;
	bool fence = false;
	bool ip_checksum = false;
	bool l4_checksum = false;
	bool force_loopback = false;
	/* Immediate data or the key to invalidate, as a number. */
	std::uint32_t immediate = 0;
	/* The flags word of the control segment, which special QPs read in their own way. */
	std::uint32_t flags_word = 0;
	/* XRC: the shared receive queue at the other end. */
	std::uint32_t remote_srq = 0;

	/* Which of these is meaningful follows from the opcode. */
	std::uint64_t remote_address = 0;
	std::uint32_t rkey = 0;
	std::uint64_t swap_or_add = 0;
	std::uint64_t compare = 0;
	std::uint64_t swap_or_add_mask = 0;
	std::uint64_t compare_mask = 0;
	hw::connectx::WqeDatagram datagram{};
	hw::connectx::WqeFastRegister fast_register{};
	hw::connectx::WqeBindWindow bind{};
	std::uint32_t invalidate_key = 0;
	unsigned mss = 0;

	/* Large send: the header that each segment repeats; else empty. */
	std::vector<std::byte> lso_header;
	std::vector<Piece> pieces;
	std::vector<std::byte> inline_data;
	/* Bytes of all the pieces together. */
	std::uint64_t length = 0;

	bool is_read() const { return opcode == hw::connectx::WqeOpcode::rdma_read; }
	bool is_atomic() const;
	/* Occupies a slot of the responder's read and atomic resources. */
	bool is_read_or_atomic() const { return is_read() || is_atomic(); }
	/* Is carried out by the card itself, with nothing sent. */
	bool is_local() const;
	bool has_immediate() const;
	bool is_write() const;

	/* Forget the previous request, keep its storage. */
	void clear();
};

/**
 * decode() - read a send WQE
 * @wqe: a private copy of the WQE, at most wqe_bytes_max bytes; control segment included
 * @service: of the QP it was posted to
 * @out: receives the request; what is in it after a failure is of no use but for signalled
 *
 * Every bit pattern gives a request or a syndrome. Keys, addresses and the length against the MTU
 * or the message limit are not looked at.
 *
 * Returns CqeSyndrome::none or the syndrome with which the WQE shall complete.
 */
hw::connectx::CqeSyndrome decode(std::span<const std::byte> wqe, hw::connectx::ServiceType service,
				 SendRequest &out);

/**
 * decode_receive() - read the scatter list of a receive WQE
 * @segments: a private copy of the data segments
 * @out: receives the pieces, in order, without empty ones
 *
 * Returns the sum of their lengths.
 */
std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out);

} // namespace weft::connectx::transport
