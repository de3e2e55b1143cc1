// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Raises the limit of open descriptors.
#pragma once

namespace weft
{

// Lets the process have as many descriptors as it is granted. A card has some 4 and, with a machine
// that uses all its interrupts, 135; the usual limit of 1024 is for programs that use select().
void raise_descriptor_limit();

} // namespace weft
