// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements `weft capture`, which requests the packets of links from weftd and writes them to a
// file or to standard output.
#pragma once

#include <filesystem>
#include <string>

namespace weft::cli
{

// Captures until a signal arrives, weftd exits or @seconds have passed (0: no limit). If @file is
// "-", each packet is written to standard output as soon as it is recorded. The capture stops if
// the reader closes the pipe.
void capture(const std::filesystem::path &socket_directory, const std::string &link,
	     const std::string &file, double seconds);

} // namespace weft::cli
