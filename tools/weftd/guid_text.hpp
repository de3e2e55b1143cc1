// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts GUIDs to text for responses and messages. JSON numbers are not used, because some JSON
// parsers lose precision of 64-bit numbers.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <ib/types.hpp>

namespace weft::weftd
{

inline std::string guid_text(ib::Guid guid)
{
	return fmt::format("{:#018x}", std::uint64_t{guid});
}

} // namespace weft::weftd
