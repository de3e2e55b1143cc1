// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Things that the fabric does later: packets on a link with a delay arrive, traps are repeated.
 * One thread, started when first needed; it sleeps while there is nothing to do.
 */
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/task.hpp"

namespace weft::fabric
{

class Timeline
{
public:
	using Clock = std::chrono::steady_clock;

	Timeline() = default;
	Timeline(const Timeline &) = delete;
	Timeline &operator=(const Timeline &) = delete;
	/* Ends the thread; what is still planned is destroyed without running. */
	~Timeline();

	/*
	 * Run task on the timeline's thread at that time or soon after. Equal times keep order. @owner: whom the task
	 * calls, if he may go before the timeline does.
	 */
	void at(Clock::time_point when, Task task, const void *owner = nullptr);
	void after(Clock::duration delay, Task task, const void *owner = nullptr)
	{
		at(Clock::now() + delay, std::move(task), owner);
	}
	/*
	 * Drop what is planned for @owner: none of it runs when this returns. Nothing but his own tasks may plan for him
	 * meanwhile. Not to be called from a task.
	 */
	void forget(const void *owner);
	/* End the thread early: nothing runs afterwards, and at() drops its task. */
	void stop();

private:
	struct Planned {
		Task task;
		const void *owner;
	};

	void run();

	std::mutex mutex_;
	std::condition_variable changed_;
	std::condition_variable task_ended_;
	std::multimap<Clock::time_point, Planned> planned_;
	/* Of the task that runs; null if none does. */
	const void *running_for_ = nullptr;
	bool stopping_ = false;
	std::thread thread_;
};

} // namespace weft::fabric
