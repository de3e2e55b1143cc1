// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include <filesystem>

namespace CLI
{
class App;
}

namespace weft::cli
{

// Adds `weft lab up|shell|down`, which scripts/lab-session does. @socket_directory outlives @app.
void add_lab(CLI::App &app, const std::filesystem::path &socket_directory);

} // namespace weft::cli
