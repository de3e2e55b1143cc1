// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "../../../../kern/bench/environment.c"
