// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../module.c against the in-tree stack, for comparison.
#include "../module.c"
