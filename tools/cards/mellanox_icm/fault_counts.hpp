// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists a card's injected faults for weftd (cards/card.hpp): how often each has occurred, and how
// often it will still occur. The functions may be called on any thread.
#pragma once

#include <vector>

#include "cards/card.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mellanox_icm
{

// Returns how often each fault has occurred.
inline std::vector<cards::Count> struck_counts(const Faults &faults)
{
	std::vector<cards::Count> counts;
	const auto names = fault_names();
	for (unsigned kind = 0; kind < names.size(); ++kind)
		counts.push_back({names[kind], faults.struck(static_cast<Fault>(kind))});
	return counts;
}

// Returns how often each armed fault will still occur; see Card::armed().
inline std::vector<cards::Count> armed_counts(const Faults &faults)
{
	std::vector<cards::Count> counts;
	const auto names = fault_names();
	for (unsigned kind = 0; kind < names.size(); ++kind)
		if (const auto left = faults.armed(static_cast<Fault>(kind)))
			counts.push_back({names[kind], left});
	return counts;
}

} // namespace weft::mellanox_icm
