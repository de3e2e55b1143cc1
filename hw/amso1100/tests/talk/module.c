// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the module entry of weft_talk, whose connections guest tests control through debugfs.
#include <kern/module.h>

KERN_MODULE("Connections of RNICs for tests", weft_talk_init, weft_talk_exit);
