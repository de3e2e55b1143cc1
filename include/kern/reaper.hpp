// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Destroys objects that cannot be destroyed where they are released: a work item or a handler
// cannot wait for its own end.
#pragma once

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/work.hpp>

namespace kern
{

/*
 * `end` is called for each on the queue, in order, without a lock, and may free it. The queue
 * outlives this; what has been added has ended when the queue was flushed.
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
