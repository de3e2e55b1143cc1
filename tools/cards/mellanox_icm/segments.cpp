// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/segments.hpp"

namespace weft::mellanox_icm
{

using hw::mlx4::wqe_unit;
using hw::mlx4::WqeAtomic;
using hw::mlx4::WqeData;
using hw::mlx4::WqeInline;
using hw::mlx4::WqeMaskedAtomic;
using hw::mlx4::WqeRemoteAddress;

bool SegmentCursor::take_after(std::size_t head, std::size_t length,
			       std::span<const std::byte> &bytes)
{
	if (length > left_.size() || head + length > left_.size())
		return false;
	bytes = left_.subspan(head, length);
	const std::size_t padded = (head + length + wqe_unit - 1) & ~std::size_t{wqe_unit - 1};
	left_ = left_.subspan(padded < left_.size() ? padded : left_.size());
	return true;
}

bool take_remote(SegmentCursor &cursor, hca::SendRequest &out)
{
	WqeRemoteAddress remote;
	if (!cursor.take(remote))
		return false;
	out.remote_address = remote.address;
	out.rkey = remote.rkey;
	return true;
}

bool take_atomic(SegmentCursor &cursor, hca::SendRequest &out)
{
	if (out.opcode == hca::SendOpcode::masked_compare_swap) {
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
	if (out.opcode == hca::SendOpcode::masked_fetch_add)
		out.compare_mask = atomic.compare;
	else
		out.compare = atomic.compare;
	return true;
}

bool take_pieces(SegmentCursor &cursor, std::uint32_t inline_mask, hca::SendRequest &out)
{
	while (!cursor.empty()) {
		WqeInline head;
		if (!cursor.peek(head))
			return false;
		if (head.byte_count & WqeData::inline_bit) {
			std::span<const std::byte> bytes;
			if (!cursor.take_after(sizeof(head), head.byte_count & inline_mask, bytes))
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
		// Real hardware interprets 0 as 2^31, but Linux uses it for empty segments.
		if (data.byte_count == 0)
			continue;
		out.pieces.push_back({data.address, data.lkey, data.byte_count, false});
		out.length += data.byte_count;
	}
	return true;
}

} // namespace weft::mellanox_icm
