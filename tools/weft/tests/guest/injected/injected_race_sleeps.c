// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: a work item takes no reference to an object, and uses the object
 * after an allocation that may sleep. A guest in virtual time frees the object meanwhile only if
 * its scheduling is perturbed.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

struct injected {
	int users;
};
static struct injected *injected;

static void injected_use(struct work_struct *unused)
{
	struct injected *own = injected;
	void *buffer = kmalloc(16, GFP_KERNEL);

	own->users++;
	kfree(buffer);
}
static DECLARE_WORK(work, injected_use);

static int __init injected_begin(void)
{
	int round;

	for (round = 0; round < 500; round++) {
		injected = kzalloc(sizeof(*injected), GFP_KERNEL);
		if (!injected)
			return -ENOMEM;
		schedule_work(&work);
		usleep_range(10, 20);
		kfree(injected);
		flush_work(&work);
	}
	return 0;
}
module_init(injected_begin);

static void __exit injected_end(void) {}
module_exit(injected_end);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
