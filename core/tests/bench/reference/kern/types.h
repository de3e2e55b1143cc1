/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* So that the counting macro of core/kern/bench can be used without the suite's headers, which would hide the kernel's. */
#pragma once
#include <linux/types.h>
