// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines work requests in the transport engine's own format. Each card decodes and checks them,
// because only the card knows their layout in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ib/types.hpp>

#include "cards/hca/memory.hpp"
#include "cards/hca/types.hpp"

namespace weft::hca
{

// Piece - a part of a request's data, in guest memory or inline in the request.
struct Piece {
	std::uint64_t address;
	std::uint32_t lkey;
	std::uint32_t length;
	// True if the address is an offset into SendRequest::inline_data; then there is no key.
	bool is_inline;
};

// Datagram - the destination of a datagram.
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

	// This bit of the Q_Key selects the Q_Key of the QP itself (IBA 10.2.5).
	static constexpr std::uint32_t kOwnQkey = 1u << 31;
};

// UpdateKey - a work request that changes a key, in the card's own format. The engine passes it to
// the card's Memory after all requests on which it depends have completed.
struct UpdateKey {
	std::uint32_t key = 0;
	// True if the key may be in use. Earlier requests then complete first, and packets in
	// flight lose access.
	bool ends_use = false;
	// True if the queue pair belongs to the operating system, so that it may use page
	// addresses, and keys of any protection domain.
	bool may_name_pages = false;
	bool any_domain = false;
	// The part of the request after its control segment, unchanged.
	std::vector<std::byte> segments;
};

struct SendRequest {
	SendOpcode opcode = SendOpcode::nop;
	// Number of slots of the send queue that the request occupies; the queue's index counts
	// slots.
	std::uint16_t slots = 1;
	bool signalled = false;
	bool solicited = false;
	bool fence = false;
	bool ip_checksum = false;
	bool l4_checksum = false;
	// True if the packet of a special QP must have the permissive LID as source.
	bool permissive_source = false;
	// The immediate data or the key to invalidate, in host byte order.
	std::uint32_t immediate = 0;
	// XRC: the number of the responder's SRQ.
	std::uint32_t remote_srq = 0;

	// The opcode determines which of the following fields are valid.
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

	// Large send: the header that each segment repeats; otherwise empty.
	std::vector<std::byte> lso_header;
	std::vector<Piece> pieces;
	std::vector<std::byte> inline_data;
	// Total length of the pieces.
	std::uint64_t length = 0;

	bool is_read() const { return opcode == SendOpcode::rdma_read; }
	bool is_atomic() const
	{
		return opcode == SendOpcode::compare_swap || opcode == SendOpcode::fetch_add ||
		       opcode == SendOpcode::masked_compare_swap ||
		       opcode == SendOpcode::masked_fetch_add;
	}
	// Returns true for requests that use the responder's resources for reads and atomics.
	bool is_read_or_atomic() const { return is_read() || is_atomic(); }
	// Returns true for requests that the card executes itself without sending a packet.
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

	// Clears the request, but keeps its allocated memory for the next request.
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

// Steering - the receive queue that the card has selected for a datagram, and the values derived
// from its headers that the completion reports.
struct Steering {
	std::uint32_t queue = 0;
	std::uint32_t hash = 0;
	std::uint8_t hash_kind = 0;
	std::uint16_t sum = 0; // one's complement sum of all bytes after the encapsulation header
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

// Returns true if queue pairs of this service support the operation.
bool opcode_allowed(SendOpcode opcode, ServiceType service);
// Checks the data of a request, but not keys and addresses: responses need memory, and the result
// of an atomic has exactly eight bytes.
Syndrome check_data(const SendRequest &request);

} // namespace weft::hca
