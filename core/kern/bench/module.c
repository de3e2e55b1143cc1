// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("What weft_kern costs, counted", weft_kern_bench_init, weft_kern_bench_exit);
