// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements warnings with a backtrace, and checks of the calling context
// (include/kern/abi/debug.h).
#include <linux/bug.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <kern/abi/debug.h>

void kern_warn_at(const char *file, int line, const char *what)
{
	WARN(1, "%s:%d: %s\n", file, line, what);
}
EXPORT_SYMBOL_GPL(kern_warn_at);

void kern_bug_at(const char *file, int line, const char *what)
{
	pr_emerg("%s:%d: %s\n", file, line, what);
	BUG();
}
EXPORT_SYMBOL_GPL(kern_bug_at);

#ifdef CONFIG_KUNIT
/*
 * The task whose checks are counted, and the number of checks. Only one test uses this at a time.
 */
static struct task_struct *watched;
static unsigned int watched_checks;

void kern_watch_sleep_checks(void)
{
	watched_checks = 0;
	WRITE_ONCE(watched, current);
}
EXPORT_SYMBOL_GPL(kern_watch_sleep_checks);

unsigned int kern_watched_sleep_checks(void)
{
	WRITE_ONCE(watched, NULL);
	return watched_checks;
}
EXPORT_SYMBOL_GPL(kern_watched_sleep_checks);
#endif

void kern_might_sleep(const char *file, int line)
{
#ifdef CONFIG_KUNIT
	if (READ_ONCE(watched) == current && in_task())
		watched_checks++;
#endif
#ifdef CONFIG_DEBUG_ATOMIC_SLEEP
	__might_sleep(file, line);
#endif
	might_resched();
}
EXPORT_SYMBOL_GPL(kern_might_sleep);

void kern_non_block_start(void)
{
	if (in_task())
		non_block_start();
}
EXPORT_SYMBOL_GPL(kern_non_block_start);

void kern_non_block_end(void)
{
	if (in_task())
		non_block_end();
}
EXPORT_SYMBOL_GPL(kern_non_block_end);

bool kern_in_hard_irq(void)
{
	return in_hardirq();
}
EXPORT_SYMBOL_GPL(kern_in_hard_irq);

bool kern_in_soft_irq(void)
{
	return in_softirq();
}
EXPORT_SYMBOL_GPL(kern_in_soft_irq);

bool kern_in_atomic(void)
{
	return in_atomic() || irqs_disabled();
}
EXPORT_SYMBOL_GPL(kern_in_atomic);

bool kern_irqs_disabled(void)
{
	return irqs_disabled();
}
EXPORT_SYMBOL_GPL(kern_irqs_disabled);

bool kern_may_sleep(void)
{
#ifdef CONFIG_DEBUG_ATOMIC_SLEEP
	if (current->non_block_count)
		return false;
#endif
	return in_task() && !in_atomic() && !irqs_disabled();
}
EXPORT_SYMBOL_GPL(kern_may_sleep);

unsigned long kern_context(void)
{
	/*
	 * The two lowest bits of a task's address are 0, so they can contain the kind of context.
	 */
	return (unsigned long)current | (in_nmi()               ? 3
					 : in_hardirq()         ? 2
					 : in_serving_softirq() ? 1
								: 0);
}
EXPORT_SYMBOL_GPL(kern_context);

unsigned int kern_cpu(void)
{
	return raw_smp_processor_id();
}
EXPORT_SYMBOL_GPL(kern_cpu);

unsigned int kern_cpu_count(void)
{
	return nr_cpu_ids;
}
EXPORT_SYMBOL_GPL(kern_cpu_count);

/*
 * These functions are called by compiler-generated code. Virtual destructors refer to operator
 * delete, although objects are freed by kern::destroy(). A call of a pure virtual function is a
 * bug, which is reported with a backtrace.
 */
void _ZdlPv(void *object);
void _ZdlPv(void *object)
{
	kfree(object);
}
EXPORT_SYMBOL_GPL(_ZdlPv);

void _ZdlPvm(void *object, size_t size);
void _ZdlPvm(void *object, size_t size)
{
	kfree(object);
}
EXPORT_SYMBOL_GPL(_ZdlPvm);

void __cxa_pure_virtual(void);
void __cxa_pure_virtual(void)
{
	BUG();
}
EXPORT_SYMBOL_GPL(__cxa_pure_virtual);
