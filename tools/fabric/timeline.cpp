// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/timeline.hpp"

#include <utility>
#include <vector>

namespace weft::fabric
{

Timeline::~Timeline()
{
	stop();
}

void Timeline::stop()
{
	std::thread thread;
	std::multimap<Clock::time_point, Planned> dropped;
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

void Timeline::at(Clock::time_point when, Task task, const void *owner)
{
	std::lock_guard lock(mutex_);
	if (stopping_)
		return;
	bool soonest = planned_.empty() || when < planned_.begin()->first;
	planned_.emplace(when, Planned{std::move(task), owner});
	if (!thread_.joinable())
		thread_ = std::thread(&Timeline::run, this);
	else if (soonest)
		changed_.notify_one();
}

void Timeline::forget(const void *owner)
{
	std::vector<Planned> dropped;
	std::unique_lock lock(mutex_);
	const auto drop = [&] {
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
	task_ended_.wait(lock, [&] { return running_for_ != owner; });
	/* The one that ran may have planned another. */
	drop();
	lock.unlock();
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
		Planned next = std::move(first->second);
		planned_.erase(first);
		running_for_ = next.owner;
		lock.unlock();
		next.task();
		next.task = Task{};
		lock.lock();
		running_for_ = nullptr;
		task_ended_.notify_all();
	}
}

} // namespace weft::fabric
