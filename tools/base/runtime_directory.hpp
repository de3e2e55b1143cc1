// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates and checks the directory for the sockets of a lab, which only the user who runs the lab
// may access.
#pragma once

#include <filesystem>

#include "base/file_descriptor.hpp"

namespace weft
{

// Returns the default directory for the sockets of a user's lab: $XDG_RUNTIME_DIR/weft or, if that
// variable is not set, weft-UID in the directory for temporary files.
std::filesystem::path default_socket_directory();

// Opens @directory, and creates it and its parents if they do not exist. In a directory that is
// writable for all users, another user may have created it before. It must therefore be a directory
// and not a symbolic link, belong to this user, and be inaccessible to all others. With
// @with_group, its group may search it. Throws std::system_error, or std::runtime_error with the
// reason.
FileDescriptor open_private_directory(const std::filesystem::path &directory,
				      bool with_group = false);

} // namespace weft
