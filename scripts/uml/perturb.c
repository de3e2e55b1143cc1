// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Perturbs the scheduling of a kernel of User-Mode Linux, which has one CPU and no preemption:
 *
 *   weft.perturb=SEED,SLEEPS,TIMERS,WORK
 *
 * Each number after SEED is the average number of opportunities of a kind, of which one is taken; 0
 * means never:
 *
 * - SLEEPS: A task that locks a mutex or a semaphore, waits for a completion, allocates memory with
 *   GFP_KERNEL or accesses memory of a program sleeps for 1 ns to 16 ms of virtual time. Virtual
 *   time advances only when no task can run, so even the shortest sleep lets all other tasks run.
 * - TIMERS: A timer of the timer wheel expires one to four jiffies late.
 * - WORK: A worker sleeps before it executes a work item. Items of the same workqueue then overtake
 *   this one, unless the workqueue is ordered. The item is running, so flushing it waits for it.
 *
 * Nothing is perturbed in the first four seconds, in which guests load their modules. The steps of
 * a schedule of `weft hunt` begin then.
 *
 * The random numbers of a jiffy depend only on SEED and on the jiffy. If something happens at one
 * time that did not happen in an earlier run, the numbers of later times therefore stay the same.
 */
#include <linux/console.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/um_perturb.h>

#define LONGEST_SLEEP_SHIFT 24 /* of nanoseconds: 16.8 ms */
#define LONGEST_DELAY 4        /* of a timer, in jiffies */
#define BEGIN (INITIAL_JIFFIES + 4 * HZ)

static u64 seed;
static unsigned int sleeps, timers, work;
/* The jiffy of the last line that begins a report of the kernel or the list of its callers. */
static unsigned long reported;

static u64 mixed(u64 value)
{
	value = (value ^ value >> 31) * 0xd6e8feb86659fd93ULL;
	value = (value ^ value >> 29) * 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 32;
}

/* Context: any. */
static u32 draw(void)
{
	static unsigned long jiffy;
	static u64 count;
	unsigned long flags;
	u64 value;

	local_irq_save(flags);
	if (jiffy != jiffies) {
		jiffy = jiffies;
		count = 0;
	}
	value = mixed(mixed(seed + jiffy) + ++count);
	local_irq_restore(flags);
	return value >> 16;
}

/*
 * Without preemption, spinlocks and rcu_read_lock() do not count in preempt_count(), but lockdep
 * knows which ones the task holds. Code that may sleep within them has a bug, whose consequences
 * would hide other bugs. After a report of lockdep, lockdep does not know any more.
 */
static bool may_sleep(void)
{
	int index;

	if (in_atomic() || irqs_disabled() || !debug_locks)
		return false;
	for (index = 0; index < current->lockdep_depth; index++) {
		unsigned int type = current->held_locks[index].instance->wait_type_inner;

		if (type != LD_WAIT_INV && type < LD_WAIT_SLEEP)
			return false;
	}
	return true;
}

static bool happens(unsigned int one_in)
{
	return one_in && system_state == SYSTEM_RUNNING && time_after(jiffies, BEGIN) &&
	       draw() % one_in == 0;
}

static void sleep_at_random(void)
{
	unsigned int shift = draw() % LONGEST_SLEEP_SHIFT;
	ktime_t time = (1ULL << shift) + (draw() & ((1ULL << shift) - 1));

	__set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&time, HRTIMER_MODE_REL);
}

/*
 * A task that is about to wait has another state, which a sleep would change. In a jiffy with a
 * report of the kernel no task sleeps, so that no other messages come between the lines of the
 * report.
 */
static void perturb(unsigned int one_in)
{
	if (!one_in || !may_sleep() || READ_ONCE(current->__state) != TASK_RUNNING ||
	    is_idle_task(current))
		return;
	if (reported != jiffies && happens(one_in))
		sleep_at_random();
}

void um_perturb_task(void)
{
	perturb(sleeps);
}

void um_perturb_work(void)
{
	perturb(work);
}

unsigned long um_perturb_expiry(unsigned long expires)
{
	return happens(timers) ? expires + 1 + draw() % LONGEST_DELAY : expires;
}

static int __init um_perturb_setup(char *text)
{
	return sscanf(text, "%llu,%u,%u,%u", &seed, &sleeps, &timers, &work) == 4;
}
__setup("weft.perturb=", um_perturb_setup);

static void um_perturb_write(struct console *unused, const char *text, unsigned int length)
{
	static const char *const beginnings[] = {"cut here",
						 "======", "BUG: ", "INFO: ", "Call Trace:"};
	int index;

	for (index = 0; index < ARRAY_SIZE(beginnings); index++)
		if (strnstr(text, beginnings[index], length))
			reported = jiffies;
}

static struct console um_perturb_console = {
	.name = "perturb",
	.write = um_perturb_write,
	.flags = CON_ENABLED | CON_ANYTIME,
	.index = -1,
};

static int __init um_perturb_report(void)
{
	if (!sleeps && !timers && !work)
		return 0;
	register_console(&um_perturb_console);
	pr_info("scheduling is perturbed: seed %llu, one in %u sleeps, %u timers, %u work items\n",
		seed, sleeps, timers, work);
	return 0;
}
late_initcall(um_perturb_report);
