// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions that add `weft lab`, `topology`, `run`, `hunt` and `web` with their
// options to weft's command line. Other programs implement these commands, and weft executes them.
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

// These commands are implemented by other programs, session/weft-session and web/weft-web, which
// weft executes with the options that it was given. @socket_directory and @as_json must outlive
// @app.

// Adds `weft lab up|shell|apply|down`, and adds to @guest_commands the descriptions that
// own_words() needs.
void add_lab(CLI::App &app, const std::filesystem::path &socket_directory, const bool &as_json,
	     std::vector<GuestCommand> &guest_commands);
// Adds `weft topology`, which the session program implements, too.
void add_topology(CLI::App &app, const std::filesystem::path &socket_directory);
// Adds `weft run`, which the session program implements, too.
void add_run(CLI::App &app, const std::filesystem::path &socket_directory,
	     std::vector<GuestCommand> &guest_commands);
// Adds `weft hunt`, which the session program implements, too.
void add_hunt(CLI::App &app, const std::filesystem::path &socket_directory);
// Adds `weft web`.
void add_web(CLI::App &app, const std::filesystem::path &socket_directory);

} // namespace weft::cli
