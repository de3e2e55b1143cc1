// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/transport/send_request.hpp"

#include <cstring>

namespace weft::connectx::transport
{

using namespace hw::connectx;

namespace
{

/* Walks over the segments of a WQE; each take() is checked against what is left. */
class Cursor
{
public:
	explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}

	bool empty() const { return left_.empty(); }
	std::size_t size() const { return left_.size(); }

	template<class Segment>
	bool take(Segment &segment)
	{
		if (!peek(segment))
			return false;
		left_ = left_.subspan(sizeof(Segment));
		return true;
	}
	template<class Segment>
	bool peek(Segment &segment) const
	{
		if (left_.size() < sizeof(Segment))
			return false;
		std::memcpy(&segment, left_.data(), sizeof(Segment));
		return true;
	}
	/* The bytes behind a head of that size; both together are padded to a unit. */
	bool take_after(std::size_t head, std::size_t length, std::span<const std::byte> &bytes)
	{
		if (length > left_.size() || head + length > left_.size())
			return false;
		bytes = left_.subspan(head, length);
		std::size_t padded = (head + length + wqe_unit - 1) & ~std::size_t{wqe_unit - 1};
		left_ = left_.subspan(padded < left_.size() ? padded : left_.size());
		return true;
	}

private:
	std::span<const std::byte> left_;
};

bool take_pieces(Cursor &cursor, SendRequest &out)
{
	while (!cursor.empty()) {
		WqeInline head;
		if (!cursor.peek(head))
			return false;
		if (head.byte_count & WqeData::inline_bit) {
			std::span<const std::byte> bytes;
			if (!cursor.take_after(sizeof(head), head.length(), bytes))
				return false;
			if (bytes.empty())
				continue;
			out.pieces.push_back({out.inline_data.size(), 0,
					      static_cast<std::uint32_t>(bytes.size()), true});
			out.inline_data.insert(out.inline_data.end(), bytes.begin(), bytes.end());
			out.length += bytes.size();
			continue;
		}
		WqeData data;
		if (!cursor.take(data))
			return false;
		/* Hardware takes 0 as 2^31; Linux posts it for an empty piece all the same. */
		if (data.byte_count == 0)
			continue;
		out.pieces.push_back({data.address, data.lkey, data.byte_count, false});
		out.length += data.byte_count;
	}
	return true;
}

bool take_lso(Cursor &cursor, SendRequest &out)
{
	WqeLso lso;
	std::span<const std::byte> header;
	if (!cursor.peek(lso) || !cursor.take_after(sizeof(lso), lso.header_bytes(), header))
		return false;
	out.mss = lso.mss();
	out.lso_header.assign(header.begin(), header.end());
	return out.mss != 0 && !out.lso_header.empty();
}

bool opcode_allowed(WqeOpcode opcode, ServiceType service)
{
	bool connected = service == ServiceType::rc || service == ServiceType::xrc;
	bool with_writes = connected || service == ServiceType::uc;
	switch (opcode) {
	case WqeOpcode::nop:
	case WqeOpcode::send:
		return true;
	case WqeOpcode::send_imm:
		return service != ServiceType::mlx;
	case WqeOpcode::lso:
		return service == ServiceType::ud;
	case WqeOpcode::rdma_write:
	case WqeOpcode::rdma_write_imm:
	case WqeOpcode::bind_window:
	case WqeOpcode::fast_register:
	case WqeOpcode::local_invalidate:
		return with_writes;
	case WqeOpcode::send_invalidate:
	case WqeOpcode::rdma_read:
	case WqeOpcode::compare_swap:
	case WqeOpcode::fetch_add:
	case WqeOpcode::masked_compare_swap:
	case WqeOpcode::masked_fetch_add:
		return connected;
	case WqeOpcode::config:
		break;
	}
	return false;
}

bool take_remote(Cursor &cursor, SendRequest &out)
{
	WqeRemoteAddress remote;
	if (!cursor.take(remote))
		return false;
	out.remote_address = remote.address;
	out.rkey = remote.rkey;
	return true;
}

bool take_atomic(Cursor &cursor, SendRequest &out)
{
	if (out.opcode == WqeOpcode::masked_compare_swap) {
		WqeMaskedAtomic masked;
		if (!cursor.take(masked))
			return false;
		out.swap_or_add = masked.swap;
		out.compare = masked.compare;
		out.swap_or_add_mask = masked.swap_mask;
		out.compare_mask = masked.compare_mask;
		return true;
	}
	WqeAtomic atomic;
	if (!cursor.take(atomic))
		return false;
	out.swap_or_add = atomic.swap_or_add;
	if (out.opcode == WqeOpcode::masked_fetch_add)
		out.compare_mask = atomic.compare;
	else
		out.compare = atomic.compare;
	return true;
}

/* The segments between the control segment and the data; false if they are cut short. */
bool take_operands(Cursor &cursor, ServiceType service, SendRequest &out)
{
	switch (out.opcode) {
	case WqeOpcode::send:
	case WqeOpcode::send_imm:
		return service != ServiceType::ud || cursor.take(out.datagram);
	case WqeOpcode::lso:
		return cursor.take(out.datagram) && take_lso(cursor, out);
	case WqeOpcode::rdma_write:
	case WqeOpcode::rdma_write_imm:
	case WqeOpcode::rdma_read:
		return take_remote(cursor, out);
	case WqeOpcode::compare_swap:
	case WqeOpcode::fetch_add:
	case WqeOpcode::masked_compare_swap:
	case WqeOpcode::masked_fetch_add:
		return take_remote(cursor, out) && take_atomic(cursor, out);
	case WqeOpcode::bind_window:
		return cursor.take(out.bind);
	case WqeOpcode::fast_register:
		return cursor.take(out.fast_register);
	case WqeOpcode::local_invalidate: {
		WqeLocalInvalidate invalidate;
		if (!cursor.take(invalidate))
			return false;
		out.invalidate_key = invalidate.key;
		return true;
	}
	case WqeOpcode::nop:
	case WqeOpcode::send_invalidate:
	case WqeOpcode::config:
		return true;
	}
	return false;
}

bool has_inline(const SendRequest &request)
{
	for (const Piece &piece : request.pieces)
		if (piece.is_inline)
			return true;
	return false;
}

} // namespace

bool SendRequest::is_atomic() const
{
	return opcode == WqeOpcode::compare_swap || opcode == WqeOpcode::fetch_add ||
	       opcode == WqeOpcode::masked_compare_swap || opcode == WqeOpcode::masked_fetch_add;
}

bool SendRequest::is_local() const
{
	return opcode == WqeOpcode::nop || opcode == WqeOpcode::bind_window ||
	       opcode == WqeOpcode::fast_register || opcode == WqeOpcode::local_invalidate;
}

bool SendRequest::has_immediate() const
{
	return opcode == WqeOpcode::send_imm || opcode == WqeOpcode::rdma_write_imm;
}

bool SendRequest::is_write() const
{
	return opcode == WqeOpcode::rdma_write || opcode == WqeOpcode::rdma_write_imm;
}

void SendRequest::clear()
{
	lso_header.clear();
	pieces.clear();
	inline_data.clear();
	length = 0;
	mss = 0;
}

CqeSyndrome decode(std::span<const std::byte> wqe, ServiceType service, SendRequest &out)
{
	out.clear();
	out.signalled = true;
	Cursor cursor(wqe);
	WqeControl control;
	if (!cursor.take(control))
		return CqeSyndrome::local_qp_operation;
	out.opcode = static_cast<WqeOpcode>(control.opcode());
	out.signalled = control.has(WqeControl::completion);
	out.solicited = control.has(WqeControl::solicited);
	out.fence = control.fenced();
	out.ip_checksum = control.has(WqeControl::ip_checksum);
	out.l4_checksum = control.has(WqeControl::l4_checksum);
	out.force_loopback = control.has(WqeControl::force_loopback);
	out.immediate = control.immediate;
	out.flags_word = control.flags_word;
	out.remote_srq = control.remote_srq();
	/* A WQE of less than its own control segment, or of more than was read. */
	if (control.units() == 0 || control.units() * wqe_unit != wqe.size())
		return CqeSyndrome::local_qp_operation;
	if (!opcode_allowed(out.opcode, service) || !take_operands(cursor, service, out))
		return CqeSyndrome::local_qp_operation;
	if (out.is_local())
		return CqeSyndrome::none;
	if (!take_pieces(cursor, out))
		return CqeSyndrome::local_qp_operation;
	/* What comes back needs memory to go to, and an atomic brings eight bytes. */
	if (out.is_read_or_atomic() && has_inline(out))
		return CqeSyndrome::local_qp_operation;
	if (out.is_atomic() && out.length < 8)
		return CqeSyndrome::local_length;
	return CqeSyndrome::none;
}

std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out)
{
	out.clear();
	std::uint64_t sum = 0;
	for (; segments.size() >= sizeof(WqeData); segments = segments.subspan(sizeof(WqeData))) {
		WqeData data;
		std::memcpy(&data, segments.data(), sizeof(data));
		if (data.byte_count == 0) {
			if (data.lkey == WqeData::terminator_lkey)
				break;
			continue;
		}
		/* Nothing can be received into a WQE: the bit is not part of the length. */
		std::uint32_t length = data.byte_count & WqeInline::length_mask;
		if (length == 0)
			continue;
		out.push_back({data.address, data.lkey, length, false});
		sum += length;
	}
	return sum;
}

} // namespace weft::connectx::transport
