// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports a card's counters under the names that users see.
#pragma once

#include <vector>

#include "cards/card.hpp"
#include "cards/hca/activity.hpp"

namespace weft::hca
{

inline std::vector<cards::Count> report(const Activity &activity)
{
	const auto count = [](const Activity::Value &value) {
		return value.load(std::memory_order_relaxed);
	};
	return {{"commands", count(activity.commands)},
		{"send_doorbells", count(activity.send_doorbells)},
		{"cq_doorbells", count(activity.cq_doorbells)},
		{"eq_doorbells", count(activity.eq_doorbells)},
		{"interrupts", count(activity.interrupts)}};
}

} // namespace weft::hca
