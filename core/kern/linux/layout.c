// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Lists the kernel objects whose sizes the C++ code needs. It is compiled to assembler only;
 * scripts/make/kbuild/layout.mk reads the sizes from the output.
 */
#include <linux/kbuild.h>
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#ifdef CONFIG_KUNIT
#include <kunit/test.h>
#endif

#define KERN_ERRNO(name, value) static_assert(name == value)
#include <kern/abi/errno.h>

/* An empty struct has size 0 in C and 1 in C++. */
#define OPAQUE(name, type)                                                                         \
	DEFINE(KERN_SIZEOF_##name, sizeof(type) ? sizeof(type) : 1);                               \
	DEFINE(KERN_ALIGNOF_##name, __alignof__(type))

void kern_layout(void);
void kern_layout(void)
{
	OPAQUE(spinlock, spinlock_t);
	OPAQUE(mutex, struct mutex);
	OPAQUE(rw_semaphore, struct rw_semaphore);
	OPAQUE(lock_class_key, struct lock_class_key);
	OPAQUE(lockdep_map, struct lockdep_map);
	OPAQUE(work, struct work_struct);
	OPAQUE(delayed_work, struct delayed_work);
	OPAQUE(timer, struct timer_list);
	OPAQUE(tasklet, struct tasklet_struct);
	OPAQUE(irq_work, struct irq_work);
	OPAQUE(completion, struct completion);
	OPAQUE(wait_queue, wait_queue_head_t);
	OPAQUE(xarray, struct xarray);
	OPAQUE(ida, struct ida);
	OPAQUE(wait_entry, wait_queue_entry_t);
	OPAQUE(pci_driver, struct pci_driver);
	OPAQUE(sg_table, struct sg_table);
	OPAQUE(rcu_head, struct rcu_head);
	OPAQUE(napi, struct napi_struct);
	DEFINE(KERN_OFFSETOF_sk_buff_data, offsetof(struct sk_buff, data));
	DEFINE(KERN_OFFSETOF_sk_buff_queue_mapping, offsetof(struct sk_buff, queue_mapping));
	/* Size of struct net_device up to the memory that netdev_priv() returns. */
	DEFINE(KERN_NETDEV_PRIVATE, ALIGN(sizeof(struct net_device), NETDEV_ALIGN));

	DEFINE(KERN_GFP_KERNEL, (__force unsigned int)GFP_KERNEL);
	DEFINE(KERN_GFP_ATOMIC, (__force unsigned int)GFP_ATOMIC);
	DEFINE(KERN_GFP_NOWAIT, (__force unsigned int)GFP_NOWAIT);
	DEFINE(KERN_GFP_KERNEL_ACCOUNT, (__force unsigned int)GFP_KERNEL_ACCOUNT);
	DEFINE(KERN_GFP_ZERO, (__force unsigned int)__GFP_ZERO);
	DEFINE(KERN_GFP_NOWARN, (__force unsigned int)__GFP_NOWARN);
	DEFINE(KERN_GFP_DIRECT_RECLAIM, (__force unsigned int)__GFP_DIRECT_RECLAIM);

	DEFINE(KERN_PAGE_SHIFT, PAGE_SHIFT);
	DEFINE(KERN_CACHE_LINE, L1_CACHE_BYTES);

#ifdef CONFIG_KUNIT
	DEFINE(KERN_SIZEOF_kunit_case, sizeof(struct kunit_case));
	DEFINE(KERN_OFFSETOF_kunit_case_run_case, offsetof(struct kunit_case, run_case));
	DEFINE(KERN_OFFSETOF_kunit_case_name, offsetof(struct kunit_case, name));
	DEFINE(KERN_SIZEOF_kunit_suite, sizeof(struct kunit_suite));
	DEFINE(KERN_OFFSETOF_kunit_suite_name, offsetof(struct kunit_suite, name));
	DEFINE(KERN_SIZEOF_kunit_suite_name, sizeof_field(struct kunit_suite, name));
	DEFINE(KERN_OFFSETOF_kunit_suite_init, offsetof(struct kunit_suite, init));
	DEFINE(KERN_OFFSETOF_kunit_suite_test_cases, offsetof(struct kunit_suite, test_cases));
#endif
}
