// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: the module frees an object some jiffies after the object's timer
 * should have expired, and does not delete the timer.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timer.h>

struct injected {
	struct timer_list timer;
};

static void injected_expire(struct timer_list *unused) {}

static int __init injected_begin(void)
{
	struct injected *injected;
	int round;

	for (round = 0; round < 100; round++) {
		injected = kzalloc(sizeof(*injected), GFP_KERNEL);
		if (!injected)
			return -ENOMEM;
		timer_setup(&injected->timer, injected_expire, 0);
		mod_timer(&injected->timer, jiffies + 1);
		usleep_range(25000, 26000);
		kfree(injected);
	}
	return 0;
}
module_init(injected_begin);

static void __exit injected_end(void) {}
module_exit(injected_end);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
