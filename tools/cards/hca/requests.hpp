// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Work requests in the transport engine's own format. Each card decodes and checks them, because
// only the card knows their layout in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ib/types.hpp>

#include "cards/hca/memory.hpp"
#include "cards/hca/types.hpp"

namespace weft::hca
{

// Piece - some of the data of a request: guest memory, or bytes that lay in the request itself.
struct Piece {
	std::uint64_t address;
	std::uint32_t lkey;
	std::uint32_t length;
	// The address is an offset into SendRequest::inline_data and there is no key.
	bool is_inline;
};

// Datagram - where a datagram goes.
struct Datagram {
	std::uint32_t pd = 0;
	std::uint8_t port = 0;
	std::uint8_t path_bits = 0;
	std::uint8_t sl = 0;
	std::uint8_t sgid_index = 0;
	std::uint8_t hop_limit = 0;
	std::uint8_t traffic_class = 0;
	bool grh = false;
	ib::Lid dlid = 0;
	std::uint32_t flow_label = 0;
	ib::Gid dgid{};
	std::uint32_t qpn = 0;
	std::uint32_t qkey = 0;

	// In the Q_Key: take the QP's own, IBA 10.2.5.
	static constexpr std::uint32_t kOwnQkey = 1u << 31;
};

// UpdateKey - a work request on a key in the card's own terms: the engine gives it back to the
// card's Memory when all requests that it has to wait for have completed.
struct UpdateKey {
	std::uint32_t key = 0;
	// The key may be in use: requests before this one complete first, and packets under way
	// lose their access.
	bool ends_use = false;
	// The queue pair is the operating system's: it may name pages by their addresses, and keys
	// of any protection domain.
	bool may_name_pages = false;
	bool any_domain = false;
	std::vector<std::byte> segments; // as they lie in the request, behind its control segment
};

struct SendRequest {
	SendOpcode opcode = SendOpcode::nop;
	// How many slots of the send queue the request takes, the index counts them.
	std::uint16_t slots = 1;
	bool signalled = false;
	bool solicited = false;
	bool fence = false;
	bool ip_checksum = false;
	bool l4_checksum = false;
	// A special QP's packet: the source LID goes out as the permissive one.
	bool permissive_source = false;
	// Immediate data or the key to invalidate, as a number.
	std::uint32_t immediate = 0;
	// XRC: the shared receive queue at the other end.
	std::uint32_t remote_srq = 0;

	// The opcode determines which of these is valid.
	std::uint64_t remote_address = 0;
	std::uint32_t rkey = 0;
	std::uint64_t swap_or_add = 0;
	std::uint64_t compare = 0;
	std::uint64_t swap_or_add_mask = 0;
	std::uint64_t compare_mask = 0;
	Datagram datagram;
	FastRegister fast_register;
	BindWindow bind;
	UpdateKey update_key;
	std::uint32_t invalidate_key = 0;
	unsigned mss = 0;

	// Large send: the header that each segment repeats; else empty.
	std::vector<std::byte> lso_header;
	std::vector<Piece> pieces;
	std::vector<std::byte> inline_data;
	// Bytes of all the pieces together.
	std::uint64_t length = 0;

	bool is_read() const { return opcode == SendOpcode::rdma_read; }
	bool is_atomic() const
	{
		return opcode == SendOpcode::compare_swap || opcode == SendOpcode::fetch_add ||
		       opcode == SendOpcode::masked_compare_swap ||
		       opcode == SendOpcode::masked_fetch_add;
	}
	// Occupies a slot of the responder's read and atomic resources.
	bool is_read_or_atomic() const { return is_read() || is_atomic(); }
	// Is carried out by the card itself, with nothing sent.
	bool is_local() const
	{
		return opcode == SendOpcode::nop || opcode == SendOpcode::bind_window ||
		       opcode == SendOpcode::fast_register ||
		       opcode == SendOpcode::local_invalidate || opcode == SendOpcode::update_key;
	}
	bool has_immediate() const
	{
		return opcode == SendOpcode::send_imm || opcode == SendOpcode::rdma_write_imm;
	}
	bool is_write() const
	{
		return opcode == SendOpcode::rdma_write || opcode == SendOpcode::rdma_write_imm;
	}
	bool has_inline() const { return !inline_data.empty(); }

	// Forget the previous request, keep its storage.
	void clear()
	{
		lso_header.clear();
		pieces.clear();
		inline_data.clear();
		length = 0;
		mss = 0;
		slots = 1;
	}
};

// Steering - the receive queue that the card has chosen for a datagram, and the results of its look
// at the datagram that go into the completion.
struct Steering {
	std::uint32_t queue = 0;
	std::uint32_t hash = 0;
	std::uint8_t hash_kind = 0;
	std::uint16_t sum = 0; // one's complement, of all bytes after the encapsulation header
};

// ReceiveWork - a receive request in use.
struct ReceiveWork {
	bool taken = false;
	std::uint16_t index = 0;
	std::uint32_t pd = 0;
	std::uint32_t cqn = 0;
	// SRQ of an XRC receive; 0 otherwise.
	std::uint32_t srqn = 0;
	std::vector<Piece> pieces;
	std::uint64_t room = 0;
	std::uint64_t used = 0;
	Steering steering; // set only for a steered queue pair
};

// Returns true if queue pairs of this service have the operation.
bool opcode_allowed(SendOpcode opcode, ServiceType service);
// Checks the data of a request, but not keys and addresses: responses need memory to go to, and an
// atomic returns exactly eight bytes.
Syndrome check_data(const SendRequest &request);

} // namespace weft::hca
