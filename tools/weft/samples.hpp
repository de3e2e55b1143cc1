// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Keeps the last two states of a fabric's links and counters. weftd sends each state as its changes
// since the state before.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::cli
{

class Samples
{
public:
	// Returns the arguments of the next "fabric.sample".
	nlohmann::json request() const;
	// Adds the result of "fabric.sample". Returns true if it is complete, so that its ports may
	// be others than before. Throws std::runtime_error if it contains changes of a sample that
	// is not the last one, or of an unknown port.
	bool add(nlohmann::json result);

	// Return the last sample and the one before, which are equal after the first sample.
	// before() has only the time and the counters.
	const nlohmann::json &now() const { return now_; }
	const nlohmann::json &before() const { return before_; }

private:
	nlohmann::json before_, now_;
	// The ports whose counters differ between the two.
	std::vector<std::string> different_;
};

} // namespace weft::cli
