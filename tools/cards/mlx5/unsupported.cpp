// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/unsupported.hpp"

#include <spdlog/spdlog.h>

namespace weft::mlx5
{

void Unsupported::note(std::string_view what, std::uint32_t number)
{
	count_.fetch_add(1, std::memory_order_relaxed);
	if (logged_.size() < kMostLogged && logged_.emplace(what, number).second)
		spdlog::info("{}: the driver asked for {} {:#x}, which this model does not have",
			     card_, what, number);
}

} // namespace weft::mlx5
