// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the completions and wait queues of include/kern/abi/wait.h. A fiber that waits is
// suspended until it is woken or its timeout has passed.
#include <algorithm>
#include <cerrno>
#include <kern/abi/wait.h>
#include "failure.hpp"
#include "jiffies.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

constexpr unsigned int all = ~0u / 2;

/* The number of completions that no waiter has consumed yet. */
unsigned int &count(kern_completion *completion)
{
	return *reinterpret_cast<unsigned int *>(completion);
}

struct Entry {
	Entry *next, *previous;
	Fiber *fiber;
	bool woken;
};
static_assert(sizeof(Entry) <= sizeof(kern_wait_entry));

/* A list that is linked through the entries, which are on the stacks of the waiting fibers. */
struct Queue {
	Entry *first;
	const void *lock_class;
};
static_assert(sizeof(Queue) <= sizeof(kern_wait_queue));

Queue &of(kern_wait_queue *queue)
{
	return *reinterpret_cast<Queue *>(queue);
}
Entry &of(kern_wait_entry *entry)
{
	return *reinterpret_cast<Entry *>(entry);
}

void wake(Queue &queue)
{
	for (Entry *entry = queue.first; entry; entry = entry->next) {
		entry->woken = true;
		scheduler().wake(*entry->fiber);
	}
}

bool wait(kern_completion *completion, std::uint64_t deadline)
{
	check_may_sleep("waits for a completion");
	while (count(completion) == 0)
		if (!scheduler().block(completion, deadline) && count(completion) == 0)
			return false;
	if (count(completion) < all)
		count(completion)--;
	return true;
}

} // namespace

extern "C" {

void kern_completion_init(struct kern_completion *completion)
{
	count(completion) = 0;
}

void kern_completion_reinit(struct kern_completion *completion)
{
	SIM_STEP(completion);
	count(completion) = 0;
}

void kern_complete(struct kern_completion *completion)
{
	SIM_STEP(completion);
	if (count(completion) < all)
		count(completion)++;
	scheduler().wake(completion);
	SIM_STEP(completion);
}

void kern_complete_all(struct kern_completion *completion)
{
	SIM_STEP(completion);
	count(completion) = all;
	scheduler().wake(completion);
	SIM_STEP(completion);
}

void kern_completion_wait(struct kern_completion *completion)
{
	SIM_STEP(completion);
	wait(completion, never);
}

bool kern_completion_wait_for(struct kern_completion *completion, unsigned int ms)
{
	SIM_STEP(completion);
	return wait(completion, scheduler().now() + ms * nanoseconds_of_ms);
}

bool kern_completion_done(struct kern_completion *completion)
{
	SIM_STEP(completion);
	return count(completion) != 0;
}

void kern_wait_queue_init(struct kern_wait_queue *queue, const char *name,
			  struct kern_lock_class_key *key)
{
	of(queue) = {.first = nullptr, .lock_class = key};
	lock_order::name(key, name);
}

/* Wakes all waiting fibers, like the kernel for non-exclusive ones. */
void kern_wake_up(struct kern_wait_queue *queue)
{
	SIM_STEP(queue);
	wake(of(queue));
	SIM_STEP(queue);
}

void kern_wake_up_all(struct kern_wait_queue *queue)
{
	SIM_STEP(queue);
	wake(of(queue));
	SIM_STEP(queue);
}

void kern_wait_entry_init(struct kern_wait_entry *native)
{
	of(native) = {.next = nullptr,
		      .previous = nullptr,
		      .fiber = &scheduler().current(),
		      .woken = false};
}

long kern_wait_prepare(struct kern_wait_queue *native, struct kern_wait_entry *waiter, bool)
{
	SIM_STEP(native);
	Queue &queue = of(native);
	Entry &entry = of(waiter);

	entry.woken = false;
	if (scheduler().current().wait_entry != &entry) {
		scheduler().current().wait_entry = &entry;
		entry.previous = nullptr;
		entry.next = queue.first;
		if (entry.next)
			entry.next->previous = &entry;
		queue.first = &entry;
	}
	return 0;
}

long kern_wait_sleep(long jiffies)
{
	Fiber &self = scheduler().current();
	auto *entry = static_cast<Entry *>(self.wait_entry);
	const std::uint64_t now = scheduler().now();
	const std::uint64_t deadline =
		jiffies == KERN_FOREVER
			? never
			: now + static_cast<std::uint64_t>(jiffies) * nanoseconds_of_jiffy;

	SIM_STEP(entry);
	check_may_sleep("waits for a condition");
	if (!entry || !entry->woken)
		scheduler().block(entry, deadline);
	if (jiffies == KERN_FOREVER)
		return KERN_FOREVER;
	const std::uint64_t then = scheduler().now();
	return then >= deadline ? 0
				: static_cast<long>((deadline - then + nanoseconds_of_jiffy - 1) /
						    nanoseconds_of_jiffy);
}

void kern_wait_finish(struct kern_wait_queue *native, struct kern_wait_entry *waiter)
{
	Queue &queue = of(native);
	Entry &entry = of(waiter);

	if (scheduler().current().wait_entry == &entry) {
		scheduler().current().wait_entry = nullptr;
		(entry.previous ? entry.previous->next : queue.first) = entry.next;
		if (entry.next)
			entry.next->previous = entry.previous;
	}
	SIM_STEP(native);
}
}
