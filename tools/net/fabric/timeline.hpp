// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Delayed work of the fabric: the arrival of packets on a link with a delay, and repeated traps. It
 * has one loop, created when first needed, which sleeps while there is nothing to do.
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

class Timeline
{
public:
	/* @reactor: whose thread tasks run on; null: one of its own, with the host's time. */
	explicit Timeline(Reactor *reactor = nullptr);
	Timeline(const Timeline &) = delete;
	Timeline &operator=(const Timeline &) = delete;
	/* Destroys planned tasks without running them. */
	~Timeline();

	/*
	 * Any thread. Run task on the timeline's thread at that time or soon after. Equal times
	 * keep order. @owner: whom the task calls, if he may go before the timeline does.
	 */
	void at(Clock::time_point when, Task task, const void *owner = nullptr);
	void after(Clock::duration delay, Task task, const void *owner = nullptr)
	{
		at(now() + delay, std::move(task), owner);
	}
	/*
	 * Drop what is planned for @owner: none of it runs when this returns. Nothing but his own
	 * tasks may plan for him meanwhile. Not to be called from a task.
	 */
	void forget(const void *owner);
	Clock::time_point now() const { return environment_.now(); }
	/*
	 * Returns the number of planned tasks. A caller uses it to bound the tasks that others can
	 * cause.
	 */
	std::size_t planned();
	Environment &environment() const { return environment_; }
	/* End early: nothing runs afterwards, and at() drops its task. Not from a task. */
	void stop();

private:
	struct Planned {
		Task task;
		const void *owner;
	};

	void run(Loop &loop);
	/* Run the first task that is due; false if there is none. */
	bool run_next();
	void wait_for_next();

	Reactor *const reactor_;
	Environment &environment_;
	Mutex mutex_;
	ConditionVariable task_ended_;
	std::multimap<Clock::time_point, Planned> planned_ WEFT_GUARDED_BY(mutex_);
	/* Owner of the task that runs; null if none does. */
	const void *running_for_ WEFT_GUARDED_BY(mutex_) = nullptr;
	bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
	std::unique_ptr<Loop> loop_ WEFT_GUARDED_BY(mutex_);

	/* On the loop. */
	std::unique_ptr<Timer> timer_;
};

} // namespace weft::fabric
