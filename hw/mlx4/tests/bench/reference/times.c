// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The same source, built against the in-tree stack for comparison.
#include "../times.c"
