// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Runs tasks at given times on one loop, which is created when first needed and sleeps while there
 * is nothing to do. The queues of a fabric are in its timeline (timeline.hpp).
 */
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/mutex.hpp"
#include "base/loop.hpp"
#include "base/task.hpp"

namespace weft::fabric
{

class TaskQueue
{
public:
	/*
	 * @reactor runs the tasks. If it is null, the queue has its own thread and uses the
	 * host's time.
	 */
	explicit TaskQueue(Reactor *reactor = nullptr);
	TaskQueue(const TaskQueue &) = delete;
	TaskQueue &operator=(const TaskQueue &) = delete;
	/* Destroys scheduled tasks without running them. */
	~TaskQueue();

	/*
	 * Runs @task on the queue's thread at @when or soon after. Thread-safe. Tasks with the same
	 * time run in order. @owner is the object that forget() names, if there is one.
	 */
	void at(Clock::time_point when, Task task, const void *owner);
	/*
	 * Drops the scheduled tasks of @owner; none of them runs after the return. During the call,
	 * only the owner's own tasks may schedule tasks for it. Must not be called in a task.
	 */
	void forget(const void *owner);
	Clock::time_point now() const { return environment_.now(); }
	std::size_t planned();
	Environment &environment() const { return environment_; }
	/* No task runs after the return, and at() drops its task. Must not be called in a task. */
	void stop();

private:
	struct Planned {
		Task task;
		const void *owner;
	};

	void run(Loop &loop);
	/* Runs the first task that is due. Returns false if there is none. */
	bool run_next();
	void wait_for_next();

	Reactor *const reactor_;
	Environment &environment_;
	Mutex mutex_;
	ConditionVariable task_ended_;
	std::multimap<Clock::time_point, Planned> planned_ WEFT_GUARDED_BY(mutex_);
	/* Owner of the running task; null if there is none. */
	const void *running_for_ WEFT_GUARDED_BY(mutex_) = nullptr;
	bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
	std::unique_ptr<Loop> loop_ WEFT_GUARDED_BY(mutex_);

	/* Used on the loop only. */
	std::unique_ptr<Timer> timer_;
};

} // namespace weft::fabric
