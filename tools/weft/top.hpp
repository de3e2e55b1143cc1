// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements `weft top`.
#pragma once

#include <filesystem>

#include "weft/render.hpp"

namespace weft::cli
{

// `weft top`: shows the fabric every @interval seconds, until q or a signal, or @count times (0:
// unlimited). On a terminal it updates the screen; otherwise it prints one table after the other.
// Throws as ControlClient does.
void run_top(const std::filesystem::path &socket_directory, double interval, unsigned count,
	     TopOrder order);

} // namespace weft::cli
