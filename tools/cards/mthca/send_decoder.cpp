// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/send_decoder.hpp"

#include <cstring>
#include <optional>

#include "cards/mellanox_icm/segments.hpp"

namespace weft::mthca
{

using hw::mellanox_icm::WqeAtomic;
using hw::mellanox_icm::WqeData;
using hw::mellanox_icm::WqeInline;
using hw::mellanox_icm::WqeOpcode;
using hw::mellanox_icm::WqeRemoteAddress;
using hw::mthca::AddressVector;
using hw::mthca::WqeDatagram;
using hw::mthca::WqeNext;

namespace
{

// Returns nothing for an opcode that this card does not support.
std::optional<SendOpcode> send_opcode(std::uint8_t opcode)
{
	switch (static_cast<WqeOpcode>(opcode)) {
	case WqeOpcode::nop:
		return SendOpcode::nop;
	case WqeOpcode::rdma_write:
		return SendOpcode::rdma_write;
	case WqeOpcode::rdma_write_imm:
		return SendOpcode::rdma_write_imm;
	case WqeOpcode::send:
		return SendOpcode::send;
	case WqeOpcode::send_imm:
		return SendOpcode::send_imm;
	case WqeOpcode::rdma_read:
		return SendOpcode::rdma_read;
	case WqeOpcode::compare_swap:
		return SendOpcode::compare_swap;
	case WqeOpcode::fetch_add:
		return SendOpcode::fetch_add;
	default:
		break;
	}
	return std::nullopt;
}

bool take_datagram(SegmentCursor &cursor, Datagram &to)
{
	WqeDatagram segment;
	if (!cursor.take(segment))
		return false;
	const AddressVector &address = segment.address;
	to.pd = address.pd();
	to.port = static_cast<std::uint8_t>(address.port());
	to.path_bits = static_cast<std::uint8_t>(address.path_bits());
	to.sl = static_cast<std::uint8_t>(address.sl());
	to.sgid_index = static_cast<std::uint8_t>(address.gid());
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

// Takes the segments between the link and the data. Returns false if they are truncated.
bool take_operands(SegmentCursor &cursor, ServiceType service, SendRequest &out)
{
	if (out.opcode == SendOpcode::nop)
		return true;
	if (out.opcode == SendOpcode::send || out.opcode == SendOpcode::send_imm)
		return service != ServiceType::ud || take_datagram(cursor, out.datagram);
	WqeRemoteAddress remote;
	if (!cursor.take(remote))
		return false;
	out.remote_address = remote.address;
	out.rkey = remote.rkey;
	if (!out.is_atomic())
		return true;
	WqeAtomic atomic;
	if (!cursor.take(atomic))
		return false;
	out.swap_or_add = atomic.swap_or_add;
	out.compare = atomic.compare;
	return true;
}

} // namespace

Syndrome decode(const WqeNext &link, std::span<const std::byte> wqe, ServiceType service,
		SendRequest &out)
{
	out.clear();
	out.signalled = true;
	out.solicited = false;
	SegmentCursor cursor(wqe);
	WqeNext own;
	if (!cursor.take(own))
		return Syndrome::local_qp_operation;
	const auto opcode = send_opcode(link.opcode());
	out.opcode = opcode.value_or(SendOpcode::nop);
	out.fence = link.fence();
	out.signalled = own.has(WqeNext::completion);
	// In a WQE of a special QP, the word has other flags, and the packet itself contains the
	// solicited bit.
	const bool whole = service == ServiceType::whole_packet;
	out.solicited = !whole && own.has(WqeNext::solicited);
	out.ip_checksum = false;
	out.l4_checksum = false;
	out.permissive_source = whole && (own.flags & WqeNext::permissive_source);
	out.immediate = own.immediate;
	out.remote_srq = 0;
	if (link.units() * hw::mellanox_icm::wqe_unit != wqe.size() || !opcode ||
	    !opcode_allowed(out.opcode, service) || !take_operands(cursor, service, out))
		return Syndrome::local_qp_operation;
	if (out.is_local())
		return Syndrome::none;
	if (!take_pieces(cursor, hw::mthca::inline_length_mask, out))
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
		if (data.lkey == hw::mthca::terminator_lkey)
			break;
		const std::uint32_t length = data.byte_count & WqeInline::length_mask;
		if (length == 0)
			continue;
		out.push_back({data.address, data.lkey, length, false});
		sum += length;
	}
	return sum;
}

} // namespace weft::mthca
