// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements timers, tasklets and irq_work, whose functions run in interrupt context
// (include/kern/abi/timer.h, tasklet.h, irq_work.h).
#include <kern/abi/irq_work.h>
#include <kern/abi/tasklet.h>
#include <kern/abi/timer.h>
#include "calls.hpp"
#include "jiffies.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

calls::Call call_of(kern_timer_item *item)
{
	return {.kind = Kind::soft_interrupt, .name = "timer", .run = [item] { item->run(item); }};
}

} // namespace

extern "C" {

void kern_timer_init(struct kern_timer_item *, const char *, struct kern_lock_class_key *) {}

void kern_timer_exit(struct kern_timer_item *item)
{
	SIM_STEP(item);
	calls::cancel_and_wait(item, false);
}

void kern_timer_start(struct kern_timer_item *item, unsigned int ms)
{
	SIM_STEP(item);
	calls::cancel(item);
	calls::request_at(item, scheduler().now() + ms * nanoseconds_of_ms, call_of(item));
	SIM_STEP(item);
}

bool kern_timer_cancel(struct kern_timer_item *item)
{
	SIM_STEP(item);
	return calls::cancel(item);
}

/*
 * Must not be called in a hard interrupt. In a soft interrupt it may wait for a callback on another
 * CPU.
 */
bool kern_timer_cancel_sync(struct kern_timer_item *item)
{
	SIM_STEP(item);
	return calls::cancel_and_wait(item, false);
}

bool kern_timer_pending(struct kern_timer_item *item)
{
	SIM_STEP(item);
	return calls::due(item);
}

void kern_tasklet_init(struct kern_tasklet_item *) {}

void kern_tasklet_schedule(struct kern_tasklet_item *item)
{
	SIM_STEP(item);
	calls::request(item, {.kind = Kind::soft_interrupt, .name = "tasklet", .run = [item] {
				      item->run(item);
			      }});
	SIM_STEP(item);
}

void kern_tasklet_cancel_sync(struct kern_tasklet_item *item)
{
	SIM_STEP(item);
	calls::cancel_and_wait(item, true);
}

void kern_irq_work_init(struct kern_irq_work_item *) {}

bool kern_irq_work_queue(struct kern_irq_work_item *item)
{
	SIM_STEP(item);
	const bool fresh = calls::request(item, {.kind = Kind::hard_interrupt,
						 .name = "hard interrupt",
						 .run = [item] { item->run(item); },
						 .overlaps = true});
	SIM_STEP(item);
	return fresh;
}

void kern_irq_work_sync(struct kern_irq_work_item *item)
{
	SIM_STEP(item);
	check_may_sleep("waits for an interrupt");
	while (calls::flush(item))
		;
}
}
