// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes inline data into send descriptors.
#pragma once
#include <rdma/ib_verbs.h>
#include <hw/mlx4/wqe.hpp>

namespace mlx4
{

namespace wire = ::hw::mlx4;

/*
 * Writes data as inline segments. Each segment begins with a length word, starts at a multiple of
 * the WQE unit, and does not cross a multiple of 64 bytes from the start of the descriptor. The
 * caller ensures that there is space for all segments (inline_bytes()).
 */
class InlineWriter
{
public:
	InlineWriter(u8 *wqe, u8 *at) : wqe_(wqe), segment_(at), at_(at + sizeof(wire::WqeInline))
	{
	}

	void write(const void *data, u32 length)
	{
		const u8 *from = static_cast<const u8 *>(data);
		while (length) {
			const u32 used = static_cast<u32>(at_ - wqe_) % 64;
			// At a multiple of 64 the current segment is full.
			const u32 space = used ? 64 - used : 0;
			if (!space) {
				close_segment();
				continue;
			}
			const u32 part = length < space ? length : space;
			__builtin_memcpy(at_, from, part);
			at_ += part;
			from += part;
			length -= part;
		}
	}
	/* Returns the address of the next segment. */
	u8 *finish()
	{
		const u32 length = static_cast<u32>(at_ - segment_) - sizeof(wire::WqeInline);
		set_length(length);
		return segment_ + ((sizeof(wire::WqeInline) + length + 15) & ~15u);
	}

private:
	void set_length(u32 length)
	{
		reinterpret_cast<wire::WqeInline *>(segment_)->byte_count =
			wire::WqeData::inline_bit | length;
	}
	void close_segment()
	{
		set_length(static_cast<u32>(at_ - segment_) - sizeof(wire::WqeInline));
		segment_ = at_;
		at_ += sizeof(wire::WqeInline);
	}

	u8 *wqe_;
	u8 *segment_;
	u8 *at_;
};

/*
 * Copies the data of a request, which the CPU addresses, as inline data. Returns nullptr if the
 * data is longer than `limit`.
 */
inline u8 *put_inline_sges(u8 *wqe, u8 *at, u32 limit, const ib_sge *sge, int count)
{
	u64 total = 0;
	for (int i = 0; i < count; i++)
		total += sge[i].length;
	if (total > limit)
		return nullptr;
	if (!total)
		return at;
	InlineWriter writer(wqe, at);
	for (int i = 0; i < count; i++)
		writer.write(reinterpret_cast<const void *>(sge[i].addr), sge[i].length);
	return writer.finish();
}

} // namespace mlx4
