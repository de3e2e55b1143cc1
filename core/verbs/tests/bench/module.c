// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/module.h>

KERN_MODULE("What the verbs cost, counted", weft_verbs_figures_init, weft_verbs_figures_exit);
