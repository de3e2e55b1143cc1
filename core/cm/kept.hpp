// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A message that may have to go out once more. Of its 256 bytes most are private data that nobody
 * has given, and an id may live for days with its last answer: zeroes at the end are not kept.
 */
#pragma once

#include <ib/cm.hpp>
#include <kern/memory.hpp>
#include <kern/span.hpp>

namespace cm
{

class Kept
{
public:
	Kept() = default;
	/* Errors: ENOMEM. Context: process. */
	static kern::Result<Kept> create(const ib::Mad &mad)
	{
		kern::ConstBytes bytes = kern::bytes_of(mad);
		while (!bytes.empty() && bytes.back() == std::byte{0})
			bytes = bytes.first(bytes.size() - 1);
		Kept kept;
		kept.bytes_ = TRY(kern::make_array<std::byte>(kern::Gfp::kernel, bytes.size()));
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
	kern::OwnedArray<std::byte> bytes_;
};

} // namespace cm
