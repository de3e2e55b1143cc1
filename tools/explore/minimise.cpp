// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "minimise.hpp"
#include <algorithm>

namespace explore
{

sim::Plan minimise(sim::Plan plan, unsigned int attempts,
		   const std::function<bool(const sim::Plan &)> &fails)
{
	using Offset = sim::Plan::difference_type;
	std::size_t piece = std::max<std::size_t>(plan.size() / 2, 1);

	while (!plan.empty() && attempts > 0) {
		bool shorter = false;
		/*
		 * Start at the end, so that decisions after the cause of the failure are removed
		 * first.
		 */
		for (std::size_t end = plan.size(); end > 0 && attempts > 0;) {
			const std::size_t begin = end > piece ? end - piece : 0;
			sim::Plan without(plan.begin(), plan.begin() + static_cast<Offset>(begin));
			without.insert(without.end(), plan.begin() + static_cast<Offset>(end),
				       plan.end());
			attempts--;
			if (fails(without)) {
				plan = std::move(without);
				shorter = true;
			}
			end = begin;
		}
		if (piece == 1 && !shorter)
			break;
		piece = std::max<std::size_t>(std::min(piece / 2, plan.size()), 1);
	}
	return plan;
}

} // namespace explore
