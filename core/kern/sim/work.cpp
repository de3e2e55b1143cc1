// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements work items and work queues (include/kern/abi/work.h). Each work item runs in its own
// task. The work items of an ordered queue run one after the other.
#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <kern/abi/work.h>
#include "calls.hpp"
#include "failure.hpp"
#include "jiffies.hpp"
#include "lock_order.hpp"
#include "memory.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace sim;

struct workqueue_struct {
	std::string name;
	kern_workqueue_kind kind;
	// Serial numbers of calls that have been queued and have not ended, in order.
	std::deque<std::uint64_t> unfinished;
};

namespace
{

struct Native {
	const void *lock_class;
	const char *name;
};
static_assert(sizeof(Native) <= sizeof(kern_work) && sizeof(Native) <= sizeof(kern_delayed_work));

std::uint64_t queued;
std::set<const workqueue_struct *> queues;

template<class Item>
Native &native(Item *item)
{
	return *reinterpret_cast<Native *>(&item->native);
}

/*
 * Returns the name of the function in `…Member = &Port::refresh; …`, which is how
 * include/kern/work.hpp names a work item.
 */
std::string short_name(const std::string &name)
{
	const auto begin = name.find("Member = ");

	if (begin == std::string::npos)
		return name;
	const auto from = begin + 9 + (name[begin + 9] == '&');
	return "work " + name.substr(from, name.find(';', from) - from);
}

template<class Item>
void init(Item *item, const char *name, kern_lock_class_key *key)
{
	native(item) = {.lock_class = key, .name = name};
	item->used = false;
	lock_order::name(key, name);
}

/* Waiting for a work item depends on all locks that its function takes. */
template<class Item>
void take_as_lock(Item *item)
{
	lock_order::taking(item, native(item).lock_class, false);
}

template<class Item>
calls::Call call_of(workqueue_struct *queue, Item *item)
{
	const void *lock_class = native(item).lock_class;
	const auto serial = std::make_shared<std::uint64_t>(0);

	return {
		.kind = Kind::task,
		.name = short_name(native(item).name),
		.run =
			[item, lock_class] {
				scheduler().current().works = true;
				lock_order::taking(item, lock_class, false);
				lock_order::took(item, lock_class);
				item->run(item);
				lock_order::released(item);
			},
		.queued =
			[queue, serial] {
				*serial = ++queued;
				queue->unfinished.push_back(*serial);
			},
		.turn =
			[queue, serial] {
				return queue->kind != KERN_WORKQUEUE_ORDERED ||
				       queue->unfinished.front() == *serial;
			},
		.turn_of = queue,
		.ended =
			[queue, serial] {
				std::erase(queue->unfinished, *serial);
				scheduler().wake(queue);
			},
	};
}

bool queue_after(workqueue_struct *queue, kern_delayed_work_item *item, unsigned int ms)
{
	if (ms == 0)
		return calls::request(item, call_of(queue, item));
	return calls::request_at(item, scheduler().now() + ms * nanoseconds_of_ms,
				 call_of(queue, item));
}

template<class Item>
bool cancel_sync(Item *item)
{
	take_as_lock(item);
	return calls::cancel_and_wait(item, true);
}

workqueue_struct system_queue{.name = "system", .kind = KERN_WORKQUEUE_PER_CPU, .unfinished = {}};

} // namespace

namespace sim
{

std::string left_queues()
{
	return queues.empty() ? std::string() : (*queues.begin())->name;
}

void reset_works()
{
	queued = 0;
	queues.clear();
	system_queue.unfinished.clear();
}

} // namespace sim

extern "C" {

void kern_work_init(struct kern_work_item *item, const char *name, struct kern_lock_class_key *key)
{
	init(item, name, key);
}

void kern_work_exit(struct kern_work_item *item)
{
	if (!item->used)
		return;
	SIM_STEP(item);
	cancel_sync(item);
}

bool kern_work_queue(struct workqueue_struct *queue, struct kern_work_item *item)
{
	SIM_STEP(item);
	item->used = true;
	const bool fresh = calls::request(item, call_of(queue, item));
	SIM_STEP(item);
	return fresh;
}

bool kern_work_cancel_sync(struct kern_work_item *item)
{
	SIM_STEP(item);
	return cancel_sync(item);
}

bool kern_work_flush(struct kern_work_item *item)
{
	SIM_STEP(item);
	take_as_lock(item);
	return calls::flush(item);
}

bool kern_work_pending(struct kern_work_item *item)
{
	SIM_STEP(item);
	return calls::due(item);
}

void kern_delayed_work_init(struct kern_delayed_work_item *item, const char *name,
			    struct kern_lock_class_key *key)
{
	init(item, name, key);
}

void kern_delayed_work_exit(struct kern_delayed_work_item *item)
{
	if (!item->used)
		return;
	SIM_STEP(item);
	cancel_sync(item);
}

bool kern_delayed_work_queue(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			     unsigned int ms)
{
	SIM_STEP(item);
	item->used = true;
	const bool fresh = queue_after(queue, item, ms);
	SIM_STEP(item);
	return fresh;
}

bool kern_delayed_work_modify(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			      unsigned int ms)
{
	SIM_STEP(item);
	item->used = true;
	const bool was_due = calls::cancel(item);
	queue_after(queue, item, ms);
	SIM_STEP(item);
	return was_due;
}

bool kern_delayed_work_cancel(struct kern_delayed_work_item *item)
{
	SIM_STEP(item);
	return calls::cancel(item);
}

bool kern_delayed_work_cancel_sync(struct kern_delayed_work_item *item)
{
	SIM_STEP(item);
	return cancel_sync(item);
}

bool kern_delayed_work_flush(struct kern_delayed_work_item *item)
{
	SIM_STEP(item);
	take_as_lock(item);
	calls::hasten(item);
	return calls::flush(item);
}

struct workqueue_struct *kern_workqueue_create(const char *name, enum kern_workqueue_kind kind)
{
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return nullptr;
	auto *queue = new workqueue_struct{.name = name, .kind = kind, .unfinished = {}};
	queues.insert(queue);
	return queue;
}

void kern_workqueue_flush(struct workqueue_struct *queue)
{
	SIM_STEP(queue);
	check_may_sleep("waits for a queue of works");
	const std::uint64_t last = queued;
	while (!queue->unfinished.empty() && queue->unfinished.front() <= last)
		scheduler().block(queue);
}

void kern_workqueue_destroy(struct workqueue_struct *queue)
{
	SIM_STEP(queue);
	check_may_sleep("waits for a queue of works");
	while (!queue->unfinished.empty())
		scheduler().block(queue);
	queues.erase(queue);
	delete queue;
}

struct workqueue_struct *kern_workqueue_system(void)
{
	return &system_queue;
}
}
