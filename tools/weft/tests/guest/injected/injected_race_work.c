// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: the first of two work items uses an object that the second one
 * frees, and their workqueue is not ordered.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

struct injected {
	int users;
};
static struct injected *injected;

static void injected_use(struct work_struct *unused)
{
	injected->users++;
}
static DECLARE_WORK(use, injected_use);

static void injected_free(struct work_struct *unused)
{
	kfree(injected);
}
static DECLARE_WORK(release, injected_free);

static int __init injected_begin(void)
{
	int round;

	for (round = 0; round < 100; round++) {
		injected = kzalloc(sizeof(*injected), GFP_KERNEL);
		if (!injected)
			return -ENOMEM;
		schedule_work(&use);
		schedule_work(&release);
		flush_work(&use);
		flush_work(&release);
	}
	return 0;
}
module_init(injected_begin);

static void __exit injected_end(void) {}
module_exit(injected_end);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
