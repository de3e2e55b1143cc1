// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds ../mad.c against the in-tree stack, for comparison.
#include "../mad.c"
