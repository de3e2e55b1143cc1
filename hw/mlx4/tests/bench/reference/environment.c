// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "../../../../../core/kern/bench/environment.c"
