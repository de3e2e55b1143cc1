// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Stores a message that may have to be retransmitted. Most of its 256 bytes are private data that
 * is usually zero, and an ID may keep its last response for days, so trailing zeroes are not
 * stored.
 */
#pragma once

#include <ib/cm.hpp>
#include <kern/memory.hpp>
#include <kern/span.hpp>

namespace cm
{

class RetransmitBuffer
{
public:
	RetransmitBuffer() = default;
	/* Errors: ENOMEM. Context: process. */
	static kern::Result<RetransmitBuffer> create(const ib::Mad &mad)
	{
		kern::ConstBytes bytes = kern::bytes_of(mad);
		while (!bytes.empty() && ends_in_zeroes(bytes))
			bytes = bytes.first(bytes.size() - step);
		RetransmitBuffer kept;
		kept.bytes_ =
			KERN_TRY(kern::make_array<std::byte>(kern::Gfp::kernel, bytes.size()));
		kern::copy(kept.bytes_.span(), bytes);
		return kept;
	}

	ib::Mad mad() const
	{
		ib::Mad mad{};
		kern::copy(kern::writable_bytes_of(mad), bytes_.span());
		return mad;
	}

private:
	/*
	 * Number of bytes that are compared at a time, because most messages end with about 200
	 * zeroes.
	 */
	static constexpr std::size_t step = sizeof(u64);
	static_assert(sizeof(ib::Mad) % step == 0);

	static bool ends_in_zeroes(kern::ConstBytes bytes)
	{
		u64 last;
		__builtin_memcpy(&last, bytes.data() + bytes.size() - step, step);
		return last == 0;
	}

	kern::OwnedArray<std::byte> bytes_;
};

} // namespace cm
