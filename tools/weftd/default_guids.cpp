// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/default_guids.hpp"

#include <cstdint>

namespace weft::weftd
{

namespace
{

constexpr ib::Guid kVendor = 0x0002c90300000000, kFurtherVendor = 0x0002c90400000000;

// FNV-1a, folded. std::hash cannot be used, because it may differ between builds.
std::uint32_t hash(std::string_view text)
{
	std::uint64_t value = 0xcbf29ce484222325;
	for (const unsigned char c : text)
		value = (value ^ c) * 0x100000001b3;
	return static_cast<std::uint32_t>(value ^ value >> 32);
}

} // namespace

DefaultGuids::DefaultGuids(std::string_view lab_name)
    : base_(kVendor | static_cast<std::uint32_t>(hash(lab_name) << kNodeBits)),
      further_(kFurtherVendor | static_cast<std::uint32_t>(hash(lab_name) << kFurtherBits))
{
}

} // namespace weft::weftd
