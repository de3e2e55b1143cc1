// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/task_queue.hpp"

#include <utility>
#include <vector>

namespace weft::fabric
{

namespace
{
/* Number of tasks that are run before the loop handles other events. */
constexpr unsigned kSliceTasks = 64;
} // namespace

TaskQueue::TaskQueue(Reactor *reactor)
    : reactor_(reactor), environment_(reactor ? reactor->environment() : Environment::host())
{
}

TaskQueue::~TaskQueue()
{
	stop();
}

void TaskQueue::stop()
{
	std::unique_ptr<Loop> loop;
	std::multimap<Clock::time_point, Planned> dropped;
	{
		const MutexLock lock(mutex_);
		stopping_ = true;
		loop = std::move(loop_);
		dropped.swap(planned_);
	}
	if (loop)
		loop->run([this] { timer_.reset(); });
}

void TaskQueue::at(Clock::time_point when, Task task, const void *owner)
{
	const MutexLock lock(mutex_);
	if (stopping_)
		return;
	/* This may fail. No task may remain that no timer will run. */
	if (!loop_)
		loop_ = reactor_ ? std::make_unique<Loop>("timeline", *reactor_)
				 : std::make_unique<Loop>("timeline");
	const bool soonest = planned_.empty() || when < planned_.begin()->first;
	const auto added = planned_.emplace(when, Planned{std::move(task), owner});
	if (!soonest)
		return;
	try {
		loop_->post([this, &loop = *loop_] {
			if (!timer_)
				timer_ =
					std::make_unique<Timer>(loop, [this, &loop] { run(loop); });
			wait_for_next();
		});
	} catch (...) {
		planned_.erase(added);
		throw;
	}
}

void TaskQueue::wait_for_next()
{
	const MutexLock lock(mutex_);
	if (!planned_.empty())
		timer_->arm_at(planned_.begin()->first);
}

std::size_t TaskQueue::planned()
{
	const MutexLock lock(mutex_);
	return planned_.size();
}

void TaskQueue::forget(const void *owner)
{
	std::vector<Planned> dropped;
	MutexLock lock(mutex_);
	const auto drop = [&]() WEFT_REQUIRES(mutex_) {
		for (auto it = planned_.begin(); it != planned_.end();) {
			if (it->second.owner == owner) {
				dropped.push_back(std::move(it->second));
				it = planned_.erase(it);
			} else {
				++it;
			}
		}
	};
	drop();
	task_ended_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return running_for_ != owner; });
	/* The task may have scheduled another one. */
	drop();
	lock.unlock();
}

/*
 * Tasks may schedule others for the present time without end, so the loop must handle other events
 * in between.
 */
void TaskQueue::run(Loop &loop)
{
	for (unsigned i = 0; i < kSliceTasks; i++)
		if (!run_next())
			return wait_for_next();
	loop.post([this, &loop] { run(loop); });
}

bool TaskQueue::run_next()
{
	MutexLock lock(mutex_);
	const auto first = planned_.begin();
	if (first == planned_.end() || first->first > now())
		return false;
	Planned next = std::move(first->second);
	planned_.erase(first);
	running_for_ = next.owner;
	lock.unlock();
	next.task();
	next.task = Task{};
	lock.lock();
	running_for_ = nullptr;
	task_ended_.notify_all();
	return true;
}

} // namespace weft::fabric
