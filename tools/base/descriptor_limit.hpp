// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Raises the process's soft limit of open descriptors to the hard limit.
#pragma once

namespace weft
{

// Raises the limit of open descriptors to the hard limit. A card needs about 4 descriptors, and 135
// with a guest that uses all its interrupts. The usual limit of 1024 exists for programs that use
// select().
void raise_descriptor_limit();

} // namespace weft
