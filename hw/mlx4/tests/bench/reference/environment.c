// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds core/kern/bench/environment.c against the in-tree stack, for comparison.
#include "../../../../../core/kern/bench/environment.c"
