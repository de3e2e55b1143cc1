// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The directory for the sockets of a lab, which only its user may access.
#pragma once

#include <filesystem>

#include "base/file_descriptor.hpp"

namespace weft
{

// Default directory for the sockets of a user's lab: $XDG_RUNTIME_DIR/weft or, if there is no such
// directory, weft-UID in the directory for temporary files.
std::filesystem::path default_socket_directory();

// Opens @directory; makes it, and those above it, if it is not there. In a directory that is
// writable for all, another user may have created it before: it must be a directory and no symbolic
// link, this user's, and closed to all others; to other members of its group it may be open, for
// looking up names, if @with_group. Throws std::system_error, std::runtime_error with the reason.
FileDescriptor open_private_directory(const std::filesystem::path &directory,
				      bool with_group = false);

} // namespace weft
