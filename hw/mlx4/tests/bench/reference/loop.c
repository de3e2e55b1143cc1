// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "../loop.c"
