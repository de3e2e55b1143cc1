// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds the kernel functions that the benchmark calls against the in-tree stack, so that the same
// benchmark runs on both stacks.
#include "../../../../../core/kern/bench/environment.c"
