// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the command line of `weft attach`.
#pragma once

#include <filesystem>
#include <vector>

#include "weft/command_line.hpp"

namespace CLI
{
class App;
}

namespace weft::cli
{

// Adds `weft attach`, and to @guest_commands what own_words() needs of it. @socket_directory
// outlives @app.
void add_attach(CLI::App &app, const std::filesystem::path &socket_directory,
		std::vector<GuestCommand> &guest_commands);

} // namespace weft::cli
