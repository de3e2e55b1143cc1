// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/unsupported.hpp"

#include <spdlog/spdlog.h>

namespace weft::mlx5
{

void Unsupported::note(RequestKind kind, std::uint32_t number)
{
	count_.fetch_add(1, std::memory_order_relaxed);
	if (logged_.size() < kMostLogged && logged_.emplace(kind, number).second)
		spdlog::info(
			"{}: the driver asked for {} {} ({:#x}), which this model does not have",
			card_, name_of(kind), name_of(kind, number), number);
}

} // namespace weft::mlx5
