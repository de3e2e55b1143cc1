// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../loop.c against the in-tree stack, for comparison.
#include "../loop.c"
