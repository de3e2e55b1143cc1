// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/transport/send_request.hpp"

#include <cstring>

#include "cards/mellanox_icm/codes.hpp"
#include "cards/mellanox_icm/segments.hpp"

namespace weft::mlx4::transport
{

using namespace hw::mlx4;

namespace
{

bool take_lso(SegmentCursor &cursor, SendRequest &out)
{
	WqeLso lso;
	std::span<const std::byte> header;
	if (!cursor.peek(lso) || !cursor.take_after(sizeof(lso), lso.header_bytes(), header))
		return false;
	out.mss = lso.mss();
	out.lso_header.assign(header.begin(), header.end());
	return out.mss != 0 && !out.lso_header.empty();
}

bool take_datagram(SegmentCursor &cursor, SendRequest &out)
{
	WqeDatagram segment;
	if (!cursor.take(segment))
		return false;
	const AddressVector &address = segment.address;
	Datagram &to = out.datagram;
	to.pd = address.pd();
	to.port = static_cast<std::uint8_t>(address.port());
	to.path_bits = static_cast<std::uint8_t>(address.path_bits());
	to.sl = static_cast<std::uint8_t>(address.sl());
	to.sgid_index = address.sgid_index;
	to.hop_limit = address.hop_limit;
	to.traffic_class = static_cast<std::uint8_t>(address.traffic_class());
	to.grh = address.grh();
	to.dlid = address.dlid;
	to.flow_label = address.flow_label();
	std::memcpy(to.dgid.raw, address.dgid, sizeof(address.dgid));
	to.qpn = segment.qpn();
	to.qkey = segment.qkey;
	return true;
}

bool take_bind(SegmentCursor &cursor, SendRequest &out)
{
	WqeBindWindow segment;
	if (!cursor.take(segment))
		return false;
	out.bind = decoded(segment);
	return true;
}

bool take_fast_register(SegmentCursor &cursor, SendRequest &out)
{
	WqeFastRegister segment;
	if (!cursor.take(segment))
		return false;
	out.fast_register = decoded(segment);
	return true;
}

/*
 * Takes the segments between the control segment and the data. Returns false if they are truncated.
 */
bool take_operands(SegmentCursor &cursor, ServiceType service, SendRequest &out)
{
	switch (out.opcode) {
	case SendOpcode::send:
	case SendOpcode::send_imm:
		return service != ServiceType::ud || take_datagram(cursor, out);
	case SendOpcode::lso:
		return take_datagram(cursor, out) && take_lso(cursor, out);
	case SendOpcode::rdma_write:
	case SendOpcode::rdma_write_imm:
	case SendOpcode::rdma_read:
		return take_remote(cursor, out);
	case SendOpcode::compare_swap:
	case SendOpcode::fetch_add:
	case SendOpcode::masked_compare_swap:
	case SendOpcode::masked_fetch_add:
		return take_remote(cursor, out) && take_atomic(cursor, out);
	case SendOpcode::bind_window:
		return take_bind(cursor, out);
	case SendOpcode::fast_register:
		return take_fast_register(cursor, out);
	case SendOpcode::local_invalidate: {
		WqeLocalInvalidate invalidate;
		if (!cursor.take(invalidate))
			return false;
		out.invalidate_key = invalidate.key;
		return true;
	}
	case SendOpcode::nop:
	case SendOpcode::send_invalidate:
		return true;
	case SendOpcode::update_key:
		break;
	}
	return false;
}

} // namespace

Syndrome decode(std::span<const std::byte> wqe, ServiceType service, SendRequest &out)
{
	out.clear();
	out.signalled = true;
	SegmentCursor cursor(wqe);
	WqeControl control;
	if (!cursor.take(control))
		return Syndrome::local_qp_operation;
	const auto opcode = send_opcode(static_cast<WqeOpcode>(control.opcode()));
	out.opcode = opcode.value_or(SendOpcode::nop);
	out.signalled = control.has(WqeControl::completion);
	out.solicited = control.has(WqeControl::solicited);
	out.fence = control.fenced();
	out.ip_checksum = control.has(WqeControl::ip_checksum);
	out.l4_checksum = control.has(WqeControl::l4_checksum);
	out.immediate = control.immediate;
	out.permissive_source = MlxFlags{control.flags_word}.permissive_source();
	out.remote_srq = control.remote_srq();
	/* The size is zero, or differs from the number of bytes that were read. */
	if (control.units() == 0 || control.units() * wqe_unit != wqe.size())
		return Syndrome::local_qp_operation;
	if (!opcode || !opcode_allowed(out.opcode, service) || !take_operands(cursor, service, out))
		return Syndrome::local_qp_operation;
	if (out.is_local())
		return Syndrome::none;
	if (!take_pieces(cursor, WqeInline::length_mask, out))
		return Syndrome::local_qp_operation;
	return check_data(out);
}

FastRegister decoded(const WqeFastRegister &segment)
{
	const std::uint32_t flags = segment.flags;
	return {.key = segment.key,
		.rights = {.local_read = (flags & WqeFastRegister::local_read) != 0,
			   .local_write = (flags & WqeFastRegister::local_write) != 0,
			   .remote_read = (flags & WqeFastRegister::remote_read) != 0,
			   .remote_write = (flags & WqeFastRegister::remote_write) != 0,
			   .remote_atomic = (flags & WqeFastRegister::remote_atomic) != 0,
			   .bind = (flags & WqeFastRegister::bind_enable) != 0},
		.page_list = segment.page_list,
		.start = segment.start,
		.length = segment.length,
		.page_shift = segment.page_shift};
}

BindWindow decoded(const WqeBindWindow &segment)
{
	const std::uint32_t access = segment.access;
	return {.new_rkey = segment.new_rkey,
		.region_lkey = segment.region_lkey,
		.rights = {.remote_read = (access & WqeBindWindow::remote_read) != 0,
			   .remote_write = (access & WqeBindWindow::remote_write) != 0,
			   .remote_atomic = (access & WqeBindWindow::remote_atomic) != 0},
		.type_2 = (segment.type & WqeBindWindow::type_2) != 0,
		.zero_based = (segment.type & WqeBindWindow::zero_based) != 0,
		.address = segment.address,
		.length = segment.length};
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
		/*
		 * Inline data cannot be a receive buffer, so the inline bit is masked out of the
		 * length.
		 */
		std::uint32_t length = data.byte_count & WqeInline::length_mask;
		if (length == 0)
			continue;
		out.push_back({data.address, data.lkey, length, false});
		sum += length;
	}
	return sum;
}

} // namespace weft::mlx4::transport
