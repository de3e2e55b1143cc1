// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the part of a lab that one daemon runs, if several daemons run the lab together. Such a
// part is called a place.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "weftd/lab.hpp"
#include "weftd/lab_plan.hpp"

namespace weft::weftd
{

struct PartOptions {
	std::string place;
	PlanOptions plan;
	std::string key_file; // instead of that of the lab file, if not empty
	bool timed = false;   // in virtual time, in which trunks need delays but no addresses
};

struct LabPart {
	Lab whole;
	PartOptions options;
};

// Returns the nodes of @whole that are at the place, and the halves of its links to other places.
// Throws LabError, and std::invalid_argument for wrong options.
Lab part_of(Lab whole, const PartOptions &options);

// Throws LabError if the lab cannot run in virtual time at several places. Returns the delays of
// the trunks of @plan.
std::vector<std::chrono::nanoseconds> trunk_delays(const Lab &whole, const Plan &plan);

// Returns the lab of @text, which will replace @running; if that is a part of a lab, the part for
// the same place. See parse_lab().
Lab parse_changed_lab(const LabText &text, const Lab &running);

// Returns the name of a trunk in its protocol, which is unique and has at most trunk::kMostName
// characters.
std::string protocol_name(const std::string &trunk);

} // namespace weft::weftd
