// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE_INFO("The kernel, as the C++ modules of weft see it");
