// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What the explorer says of a case, for its own tests.
#pragma once
#include <algorithm>
#include <string>
#include <vector>
#include <gtest/gtest.h>
#include "../child.hpp"
#include "../report.hpp"
#include "../run.hpp"

namespace explore
{

inline const hosted::Case &case_of(const std::string &name)
{
	const auto found = std::find_if(cases().begin(), cases().end(),
					[&](const hosted::Case &one) { return one.name == name; });

	if (found == cases().end())
		throw std::runtime_error("there is no case " + name);
	return *found;
}

} // namespace explore
