// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include <filesystem>

namespace weft
{

// Where a user's lab has its sockets unless told otherwise: $XDG_RUNTIME_DIR/weft, or, where there
// is no such directory, weft-UID in the directory for temporary files.
std::filesystem::path default_socket_directory();

} // namespace weft
