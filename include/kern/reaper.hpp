// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Destroys objects that cannot be destroyed where they are released, because a work item or a
// handler cannot wait for itself.
#pragma once

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/work.hpp>

namespace kern
{

/*
 * `end` is called in the work queue for each added object, in order, without a lock; it may free
 * the object. The queue must outlive this. After the queue has been flushed, all objects that were
 * added before have been destroyed.
 */
template<class T, ListNode T::*node, void (T::*end)()>
class Reaper
{
public:
	Reaper(LockClass &lock_class, WorkQueue &queue) : lock_(lock_class), queue_(queue) {}

	/* Context: process. */
	void add(T &object)
	{
		Guard guard(lock_);
		ended_.push_back(object);
		queue_.queue(work_);
	}

private:
	void run()
	{
		for (;;) {
			T *object;
			{
				Guard guard(lock_);
				object = ended_.pop_front();
			}
			if (!object)
				return;
			(object->*end)();
		}
	}

	SpinLock lock_;
	List<T, node> ended_ KERN_GUARDED_BY(lock_);
	WorkQueue &queue_;
	Work work_{method<&Reaper::run>, this};
};

} // namespace kern
