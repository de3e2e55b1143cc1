// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("Connections of RNICs for tests", weft_talk_init, weft_talk_exit);
