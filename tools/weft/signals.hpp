// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Blocks signals and reports them through a file descriptor, for programs that must clean up before
// they exit.
#pragma once

#include <initializer_list>

#include "base/file_descriptor.hpp"

namespace weft::cli
{

// Blocks these signals and returns a descriptor that reports them, for programs that must clean up
// before they exit.
FileDescriptor signal_descriptor(std::initializer_list<int> numbers);

} // namespace weft::cli
