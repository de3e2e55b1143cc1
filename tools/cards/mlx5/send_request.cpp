// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/send_request.hpp"

#include <cstring>
#include <optional>

#include "cards/mellanox_icm/codes.hpp"
#include "cards/mellanox_icm/segments.hpp"

namespace weft::mlx5
{

using hw::mellanox_icm::WqeOpcode;
using hw::mlx5::WqeControl;
using hw::mlx5::WqeData;
using hw::mlx5::WqeDatagram;
using hw::mlx5::WqeOffload;
using hw::mlx5::WqeUmr;
using hw::mlx5::WqeXrc;
using mellanox_icm::SegmentCursor;
using mellanox_icm::take_atomic;
using mellanox_icm::take_remote;

namespace
{

// An inline segment's length has ten bits.
constexpr std::uint32_t kInlineMask = 0x3ff;

std::optional<SendOpcode> send_opcode(std::uint32_t code)
{
	return code == hw::mlx5::opcode_umr
		       ? SendOpcode::update_key
		       : mellanox_icm::send_opcode(static_cast<WqeOpcode>(code));
}

// The short form of an address vector is not supported.
bool take_datagram(SegmentCursor &cursor, SendRequest &out)
{
	WqeDatagram segment;
	if (!cursor.take(segment) || !WqeDatagram::extended.get(segment.bytes))
		return false;
	const auto byte = [&](const hw::mlx5::Field &field) {
		return static_cast<std::uint8_t>(field.get(segment.bytes));
	};
	Datagram &to = out.datagram;
	to = {};
	to.path_bits = byte(WqeDatagram::path_bits);
	to.sl = byte(WqeDatagram::sl);
	to.sgid_index = byte(WqeDatagram::sgid_index);
	to.hop_limit = byte(WqeDatagram::hop_limit);
	to.traffic_class = byte(WqeDatagram::traffic_class);
	to.grh = WqeDatagram::grh.get(segment.bytes);
	to.dlid = static_cast<ib::Lid>(WqeDatagram::dlid.get(segment.bytes));
	to.flow_label = WqeDatagram::flow_label.get(segment.bytes);
	std::memcpy(to.dgid.raw, segment.bytes + WqeDatagram::dgid, sizeof(to.dgid.raw));
	to.qpn = WqeDatagram::qpn.get(segment.bytes);
	to.qkey = WqeDatagram::qkey.get(segment.bytes);
	return true;
}

// @inline_header: the segment may contain the first bytes of a datagram that is not a large send.
bool take_offload(SegmentCursor &cursor, bool inline_header, SendRequest &out)
{
	WqeOffload offload;
	std::span<const std::byte> header;
	if (!cursor.peek(offload) ||
	    !cursor.take_after(WqeOffload::header, WqeOffload::header_size.get(offload.bytes),
			       header))
		return false;
	out.ip_checksum = WqeOffload::l3_checksum.get(offload.bytes);
	out.l4_checksum = WqeOffload::l4_checksum.get(offload.bytes);
	if (out.opcode != SendOpcode::lso) {
		if (header.empty())
			return true;
		out.pieces.push_back({0, 0, static_cast<std::uint32_t>(header.size()), true});
		out.inline_data.assign(header.begin(), header.end());
		out.length = header.size();
		return inline_header;
	}
	out.mss = WqeOffload::mss.get(offload.bytes);
	out.lso_header.assign(header.begin(), header.end());
	return out.mss != 0 && !header.empty();
}

// The segments after the control segment are parsed by MemoryKeys (key_requests.cpp).
void take_update(std::span<const std::byte> segments, std::uint32_t key, const QueuePair &qp,
		 SendRequest &out)
{
	UpdateKey &update = out.update_key;
	update.key = key;
	update.segments.assign(segments.begin(), segments.end());
	update.any_domain = qp.kind == QpService::reg_umr;
	update.may_name_pages = update.any_domain || qp.reserved_lkey;
	// A request that fails unless the key is free does not affect users of the key.
	update.ends_use = segments.size() < WqeUmr::size ||
			  !WqeUmr::fail_unless_free.get(
				  reinterpret_cast<const std::uint8_t *>(segments.data()));
}

// Takes the segments between the control segment and the data; returns false if they are truncated.
bool take_operands(SegmentCursor &cursor, const QueuePair &qp, SendRequest &out)
{
	if (qp.service == ServiceType::xrc) {
		WqeXrc xrc;
		if (!cursor.take(xrc))
			return false;
		out.remote_srq = xrc.srqn;
	}
	switch (out.opcode) {
	case SendOpcode::send:
	case SendOpcode::send_imm:
	case SendOpcode::lso:
		return qp.service != ServiceType::ud ||
		       (take_datagram(cursor, out) &&
			(!qp.ip_offload || take_offload(cursor, qp.is_send_queue, out)));
	case SendOpcode::rdma_write:
	case SendOpcode::rdma_write_imm:
	case SendOpcode::rdma_read:
		return take_remote(cursor, out);
	case SendOpcode::compare_swap:
	case SendOpcode::fetch_add:
	case SendOpcode::masked_compare_swap:
	case SendOpcode::masked_fetch_add:
		return take_remote(cursor, out) && take_atomic(cursor, out);
	default:
		return true;
	}
}

// Masked atomics require operands of the size that the card reports.
bool size_allowed(SendOpcode opcode, std::uint32_t modifier)
{
	return (opcode != SendOpcode::masked_compare_swap &&
		opcode != SendOpcode::masked_fetch_add) ||
	       modifier == WqeControl::masked_8_bytes;
}

// Keys are changed only by UMR requests.
bool allowed(SendOpcode opcode, const QueuePair &qp)
{
	if (qp.is_send_queue)
		return opcode == SendOpcode::nop || opcode == SendOpcode::send ||
		       opcode == SendOpcode::lso;
	switch (opcode) {
	case SendOpcode::lso:
		return qp.ip_offload;
	case SendOpcode::bind_window:
	case SendOpcode::fast_register:
	case SendOpcode::local_invalidate:
		return false;
	case SendOpcode::nop:
	case SendOpcode::update_key:
		return qp.kind == QpService::reg_umr || opcode_allowed(opcode, qp.service);
	default:
		return qp.kind != QpService::reg_umr && opcode_allowed(opcode, qp.service);
	}
}

} // namespace

std::uint8_t send_code(SendOpcode opcode)
{
	return opcode == SendOpcode::update_key
		       ? hw::mlx5::opcode_umr
		       : static_cast<std::uint8_t>(mellanox_icm::wqe_opcode(opcode));
}

Syndrome decode_send(std::span<const std::byte> wqe, const QueuePair &qp, SendRequest &out)
{
	out.clear();
	out.signalled = true;
	SegmentCursor cursor(wqe);
	WqeControl control;
	if (!cursor.take(control))
		return Syndrome::local_qp_operation;
	const auto opcode = send_opcode(WqeControl::opcode.get(control.bytes));
	out.opcode = opcode.value_or(SendOpcode::nop);
	out.signalled = WqeControl::completion.get(control.bytes) >= WqeControl::always;
	out.solicited = WqeControl::solicited.get(control.bytes);
	out.fence = WqeControl::fence.get(control.bytes) != 0;
	out.ip_checksum = out.l4_checksum = out.permissive_source = false;
	out.immediate = WqeControl::immediate.get(control.bytes);
	if (WqeControl::units.get(control.bytes) * hw::mlx5::wqe_unit != wqe.size() || !opcode ||
	    !allowed(out.opcode, qp) ||
	    !size_allowed(out.opcode, WqeControl::op_modifier.get(control.bytes)))
		return Syndrome::local_qp_operation;
	if (out.opcode == SendOpcode::update_key) {
		take_update(wqe.subspan(sizeof(control)), out.immediate, qp, out);
		return Syndrome::none;
	}
	if (out.is_local())
		return Syndrome::none;
	if (!take_operands(cursor, qp, out) || !mellanox_icm::take_pieces(cursor, kInlineMask, out))
		return Syndrome::local_qp_operation;
	return check_data(out);
}

std::uint64_t decode_receive(std::span<const std::byte> segments, std::vector<Piece> &out)
{
	out.clear();
	std::uint64_t sum = 0;
	for (; segments.size() >= sizeof(WqeData); segments = segments.subspan(sizeof(WqeData))) {
		WqeData data;
		std::memcpy(&data, segments.data(), sizeof(data));
		if (data.lkey == WqeData::terminator_lkey)
			break;
		const std::uint32_t length = data.byte_count & ~WqeData::inline_bit;
		if (length == 0)
			continue;
		out.push_back({data.address, data.lkey, length, false});
		sum += length;
	}
	return sum;
}

} // namespace weft::mlx5
