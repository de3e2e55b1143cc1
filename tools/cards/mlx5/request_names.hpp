// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Returns the names of requests for log messages, as in the card's manual.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::mlx5
{

enum class RequestKind : std::uint8_t {
	command,
	register_access,
	capabilities,
	queue_pair_type,
	event_queue_page,
};

std::string_view name_of(RequestKind kind);
// Returns the name of a number of this kind; "unknown" if it has no name.
std::string_view name_of(RequestKind kind, std::uint32_t number);

} // namespace weft::mlx5
