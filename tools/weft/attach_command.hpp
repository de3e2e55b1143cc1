// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the function that adds `weft attach` and its options to weft's command line.
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

// Adds `weft attach`, and adds to @guest_commands the description that own_words() needs.
// @socket_directory must outlive @app.
void add_attach(CLI::App &app, const std::filesystem::path &socket_directory,
		std::vector<GuestCommand> &guest_commands);

} // namespace weft::cli
