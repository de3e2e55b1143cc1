// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Parses the command line of weft-explore. */
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include "child.hpp"

namespace explore
{

struct Options {
	// Pattern for names of cases.
	std::string pattern = "";
	std::uint64_t first_seed = 1, last_seed = 1000;
	Limits limits;
	bool list = false;
};

/*
 * Parses the command line. Returns nothing if the user has requested the help, which was then
 * printed. Throws the error message if the command line is invalid.
 */
std::optional<Options> parse(int argc, char **argv);

} // namespace explore
