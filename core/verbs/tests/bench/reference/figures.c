// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../figures.c against the in-tree stack, for comparison.
#include <linux/module.h>
#include "../figures.c"
