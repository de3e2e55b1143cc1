// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../counts.c against the in-tree stack, for comparison.
#include "../counts.c"
