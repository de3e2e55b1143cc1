// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Executes the delayed work of the fabric, such as the arrival of packets on a link with a delay,
 * and the repetition of traps. The work is distributed among several threads, so that it does not
 * limit a fabric on a host with many CPUs. The tasks of one owner run on one thread, in order.
 */
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/loop.hpp"
#include "base/task.hpp"
#include "net/fabric/task_queue.hpp"

namespace weft::fabric
{

class Timeline
{
public:
	/*
	 * @reactor runs the tasks. If it is null, the timeline has up to @threads threads of its
	 * own, each of which is started when it gets its first task, and uses the host's time. With
	 * a reactor there is one queue, because the order of tasks of different owners must be
	 * reproducible in virtual time.
	 */
	explicit Timeline(Reactor *reactor = nullptr, std::size_t threads = default_threads());
	/* Tasks on one thread may schedule tasks on another one, so all are stopped first. */
	~Timeline() { stop(); }
	Timeline(const Timeline &) = delete;
	Timeline &operator=(const Timeline &) = delete;

	/* Returns the number of the host's CPUs, but at most 32. */
	static std::size_t default_threads();

	/*
	 * Runs @task on a thread of the timeline at @when or soon after. Thread-safe. @owner is the
	 * object that the task calls. Tasks of one owner never run at the same time; those with the
	 * same time run in order.
	 */
	void at(Clock::time_point when, Task task, const void *owner)
	{
		queue_of(owner).at(when, std::move(task), owner);
	}
	void after(Clock::duration delay, Task task, const void *owner)
	{
		at(now() + delay, std::move(task), owner);
	}
	/*
	 * Drops the scheduled tasks of @owner; none of them runs after the return. During the call,
	 * only the owner's own tasks may schedule tasks for it. Must not be called in a task.
	 */
	void forget(const void *owner) { queue_of(owner).forget(owner); }
	Clock::time_point now() const { return queues_.front()->now(); }
	/*
	 * Returns the number of scheduled tasks, with which a caller can limit the tasks that
	 * others cause.
	 */
	std::size_t planned();
	Environment &environment() const { return queues_.front()->environment(); }
	/*
	 * Stops the timeline before its destruction: no task runs afterwards, and at() drops its
	 * task. Must not be called in a task.
	 */
	void stop();

private:
	TaskQueue &queue_of(const void *owner);

	/* Never empty, and constant after construction. */
	std::vector<std::unique_ptr<TaskQueue>> queues_;
};

} // namespace weft::fabric
