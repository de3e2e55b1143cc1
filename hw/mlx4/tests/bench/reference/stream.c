// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../stream.c against the in-tree stack, for comparison.
#include "../stream.c"
