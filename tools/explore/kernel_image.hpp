// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The shared object that the kernel half is compiled into. Its variables are put back before each
// run, as a kernel's are that boots.
#pragma once

namespace explore
{

/* As they are now, at the first call; afterwards back to that. */
void restore_kernel_image();

} // namespace explore
