// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's clocks, delays, sleeps and random numbers for C++ code
// (include/kern/abi/time.h).
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <kern/abi/time.h>

u64 kern_now_ns(void)
{
	return ktime_get_ns();
}
EXPORT_SYMBOL_GPL(kern_now_ns);

u64 kern_jiffies(void)
{
	return jiffies;
}
EXPORT_SYMBOL_GPL(kern_jiffies);

u64 kern_ms_to_jiffies(unsigned int ms)
{
	return msecs_to_jiffies(ms);
}
EXPORT_SYMBOL_GPL(kern_ms_to_jiffies);

void kern_sleep_ms(unsigned int ms)
{
	msleep(ms);
}
EXPORT_SYMBOL_GPL(kern_sleep_ms);

void kern_sleep_us(unsigned int min, unsigned int max)
{
	usleep_range(min, max);
}
EXPORT_SYMBOL_GPL(kern_sleep_us);

void kern_delay_us(unsigned int us)
{
	udelay(us);
}
EXPORT_SYMBOL_GPL(kern_delay_us);

void kern_cond_resched(void)
{
	cond_resched();
}
EXPORT_SYMBOL_GPL(kern_cond_resched);

u32 kern_random_u32(void)
{
	return get_random_u32();
}
EXPORT_SYMBOL_GPL(kern_random_u32);

u64 kern_random_u64(void)
{
	return get_random_u64();
}
EXPORT_SYMBOL_GPL(kern_random_u64);

void kern_random_bytes(void *to, size_t size)
{
	get_random_bytes(to, size);
}
EXPORT_SYMBOL_GPL(kern_random_bytes);
