// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs deferred work in process context, in which it may sleep.
//
//	class Port {
//		void refresh();
//		kern::Work refresh_work_{kern::method<&Port::refresh>, this};
//	};
//	queue->queue(refresh_work_);
//
// Destroying a work item cancels it and waits until its function has returned, so the function must
// not destroy it.
#pragma once
#include <utility>
#include <kern/abi/work.h>
#include <kern/method.hpp>
#include <kern/result.hpp>

namespace kern
{

class Work
{
public:
	template<auto Member, class T>
	Work(Method<Member>, T *object)
	{
		static constinit kern_lock_class_key key{};
		item_.run = [](kern_work_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_work_init(&item_, __PRETTY_FUNCTION__, &key);
	}
	~Work() { kern_work_exit(&item_); }
	Work(const Work &) = delete;
	Work &operator=(const Work &) = delete;

	/*
	 * Queues the item on the system's queue. Returns false if it is queued already. Context:
	 * any.
	 */
	bool queue() { return kern_work_queue(kern_workqueue_system(), &item_); }
	bool pending() { return kern_work_pending(&item_); }
	/*
	 * Removes the item from its queue, and waits until its function has returned. Returns true
	 * if it was queued. May sleep.
	 */
	bool cancel() { return kern_work_cancel_sync(&item_); }
	/* Waits until the function has run, if the item is queued. May sleep. */
	void flush() { kern_work_flush(&item_); }

private:
	friend class WorkQueue;
	kern_work_item item_;
};

class DelayedWork
{
public:
	template<auto Member, class T>
	DelayedWork(Method<Member>, T *object)
	{
		static constinit kern_lock_class_key key{};
		item_.run = [](kern_delayed_work_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_delayed_work_init(&item_, __PRETTY_FUNCTION__, &key);
	}
	~DelayedWork() { kern_delayed_work_exit(&item_); }
	DelayedWork(const DelayedWork &) = delete;
	DelayedWork &operator=(const DelayedWork &) = delete;

	/*
	 * Queues the item on the system's queue after this time. Returns false if it is queued
	 * already. Context: any.
	 */
	bool queue(unsigned int ms)
	{
		return kern_delayed_work_queue(kern_workqueue_system(), &item_, ms);
	}
	/* Queues the item after this time from now, or changes its time. */
	void reschedule(unsigned int ms)
	{
		kern_delayed_work_modify(kern_workqueue_system(), &item_, ms);
	}
	/* Removes the item from its queue. Does not wait for a running function. Context: any. */
	bool cancel_async() { return kern_delayed_work_cancel(&item_); }
	/* Removes the item from its queue, and waits for a running function. May sleep. */
	bool cancel() { return kern_delayed_work_cancel_sync(&item_); }
	/* Runs the function immediately if the item is queued, and waits for it. May sleep. */
	void flush() { kern_delayed_work_flush(&item_); }

private:
	friend class WorkQueue;
	kern_delayed_work_item item_;
};

class WorkQueue
{
public:
	enum class Kind {
		ordered = KERN_WORKQUEUE_ORDERED, // one at a time, in the order of queueing
		per_cpu = KERN_WORKQUEUE_PER_CPU,
		unbound = KERN_WORKQUEUE_UNBOUND,
	};

	WorkQueue() = default;
	/* May sleep. Errors: ENOMEM. */
	static Result<WorkQueue> create(const char *name, Kind kind)
	{
		auto *queue = kern_workqueue_create(name, static_cast<kern_workqueue_kind>(kind));
		if (!queue)
			return Error{-ENOMEM};
		return WorkQueue(queue);
	}
	WorkQueue(WorkQueue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
	WorkQueue &operator=(WorkQueue &&other) noexcept
	{
		std::swap(queue_, other.queue_);
		return *this;
	}
	/* Waits for all queued items. May sleep. */
	~WorkQueue()
	{
		if (queue_)
			kern_workqueue_destroy(queue_);
	}

	/* Returns false if it is queued already. Context: any. */
	bool queue(Work &work) { return kern_work_queue(queue_, &work.item_); }
	bool queue(DelayedWork &work, unsigned int ms)
	{
		return kern_delayed_work_queue(queue_, &work.item_, ms);
	}
	void reschedule(DelayedWork &work, unsigned int ms)
	{
		kern_delayed_work_modify(queue_, &work.item_, ms);
	}
	/* Waits for all items that are currently queued. May sleep. */
	void flush() { kern_workqueue_flush(queue_); }
	explicit operator bool() const { return queue_ != nullptr; }

private:
	explicit WorkQueue(workqueue_struct *queue) : queue_(queue) {}
	workqueue_struct *queue_ = nullptr;
};

} // namespace kern
