// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include <filesystem>

namespace CLI
{
class App;
}

namespace weft::cli
{

// What runs machines is a program of its own, session/weft-session, which weft becomes with the options that it was given.
// @socket_directory outlives @app.

// Adds `weft lab up|shell|down`.
void add_lab(CLI::App &app, const std::filesystem::path &socket_directory);
// Adds `weft run`.
void add_run(CLI::App &app, const std::filesystem::path &socket_directory);

} // namespace weft::cli
