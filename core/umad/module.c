// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("InfiniBand management datagrams for programs", weft_umad_init, weft_umad_exit);
