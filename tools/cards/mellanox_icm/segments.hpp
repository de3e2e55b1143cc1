// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads the segments of a send WQE one after the other, from a private copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <hw/mlx4/wqe.hpp>

#include "cards/hca/requests.hpp"

namespace weft::mellanox_icm
{

// SegmentCursor - iterates over the segments of a WQE. Each take() checks the remaining length.
class SegmentCursor
{
public:
	explicit SegmentCursor(std::span<const std::byte> bytes) : left_(bytes) {}

	bool empty() const { return left_.empty(); }

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
	// Takes the bytes that follow a header of @head bytes. Header and bytes together are padded
	// to a unit.
	bool take_after(std::size_t head, std::size_t length, std::span<const std::byte> &bytes);

private:
	std::span<const std::byte> left_;
};

// Takes the segments before the data of RDMA requests and atomics. Returns false if they are
// truncated.
bool take_remote(SegmentCursor &cursor, hca::SendRequest &out);
bool take_atomic(SegmentCursor &cursor, hca::SendRequest &out);

// Takes the data segments, to the end of the WQE. @inline_mask has the length bits of an inline
// segment. Returns false if they are truncated.
bool take_pieces(SegmentCursor &cursor, std::uint32_t inline_mask, hca::SendRequest &out);

} // namespace weft::mellanox_icm
