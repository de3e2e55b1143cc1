// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/timeline.hpp"

#include <utility>

namespace weft::fabric
{

Timeline::~Timeline()
{
	stop();
}

void Timeline::stop()
{
	std::thread thread;
	std::multimap<Clock::time_point, Task> dropped;
	{
		std::lock_guard lock(mutex_);
		stopping_ = true;
		thread = std::move(thread_);
		dropped = std::move(planned_);
		planned_.clear();
	}
	changed_.notify_all();
	if (thread.joinable())
		thread.join();
}

void Timeline::at(Clock::time_point when, Task task)
{
	std::lock_guard lock(mutex_);
	if (stopping_)
		return;
	bool soonest = planned_.empty() || when < planned_.begin()->first;
	planned_.emplace(when, std::move(task));
	if (!thread_.joinable())
		thread_ = std::thread(&Timeline::run, this);
	else if (soonest)
		changed_.notify_one();
}

void Timeline::run()
{
	std::unique_lock lock(mutex_);
	while (!stopping_) {
		if (planned_.empty()) {
			changed_.wait(lock);
			continue;
		}
		auto first = planned_.begin();
		if (first->first > Clock::now()) {
			changed_.wait_until(lock, first->first);
			continue;
		}
		Task task = std::move(first->second);
		planned_.erase(first);
		lock.unlock();
		task();
		task = Task{};
		lock.lock();
	}
}

} // namespace weft::fabric
