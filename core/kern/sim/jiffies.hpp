// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines time units of the simulated kernel: 1,000 ticks per second.
#pragma once
#include <cstdint>

namespace sim
{

inline constexpr std::uint64_t nanoseconds_of_ms = 1'000'000;
inline constexpr std::uint64_t nanoseconds_of_jiffy = nanoseconds_of_ms;

} // namespace sim
