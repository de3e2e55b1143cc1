// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements `weft top`, which repeatedly shows the links of the fabric with their rates and errors
// on a terminal.
#pragma once

#include <filesystem>

#include "weft/render.hpp"

namespace weft::cli
{

// Shows the fabric every @interval seconds, until q or a signal, or @count times (0: no limit). On
// a terminal, updates the screen; otherwise prints one table after the other. Throws as
// ControlClient does.
void run_top(const std::filesystem::path &socket_directory, double interval, unsigned count,
	     TopOrder order);

} // namespace weft::cli
