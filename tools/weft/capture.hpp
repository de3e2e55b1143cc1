// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// `weft capture`: has weftd record links to a file, or to standard output.
#pragma once

#include <filesystem>
#include <string>

namespace weft::cli
{

// Until a signal arrives, weftd exits or @seconds (0: no limit) are over. @file "-": to standard
// output, each packet as it is recorded; a reader that closes the pipe stops the capture.
void capture(const std::filesystem::path &socket_directory, const std::string &link,
	     const std::string &file, double seconds);

} // namespace weft::cli
