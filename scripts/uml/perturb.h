/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The functions by which perturb.c takes part in sleeping functions, the timer wheel and the
 * workqueues. The compiler includes this file at the beginning of some sources (uml/apply), in
 * which might_sleep() then calls um_perturb_task().
 */
#ifndef LINUX_UM_PERTURB_H
#define LINUX_UM_PERTURB_H

#ifndef __ASSEMBLY__
#include <linux/kernel.h>

/* Sleeps at random if the task may sleep. */
void um_perturb_task(void);
/* Called by a worker before it executes an item, without locks. */
void um_perturb_work(void);
/* Returns when a timer expires that should expire at @expires. Context: any. */
unsigned long um_perturb_expiry(unsigned long expires);

#undef might_resched
#define might_resched() um_perturb_task()
#endif

#endif
