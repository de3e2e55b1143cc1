// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Loads the shared object with the kernel modules under test. The modules' variables are restored
// before each run, as if the kernel had booted again.
#pragma once

namespace explore
{

/* The first call saves the variables of the kernel half; later calls restore them. */
void restore_kernel_image();

} // namespace explore
