// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Counts a driver's requests to a card and the card's events, since weftd's start. The counts are
// used to compare drivers.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::hca
{

// Incremented on the card's loop, and read on any thread.
struct Activity {
	using Value = std::atomic<std::uint64_t>;

	Value commands{0};
	// Accesses to BAR 2. Each costs the guest one message to the card's process.
	Value send_doorbells{0};
	Value cq_doorbells{0};
	Value eq_doorbells{0};
	Value interrupts{0};

	// Only one thread writes, so no atomic addition is needed.
	static void add(Value &value)
	{
		value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
	}
};

} // namespace weft::hca
