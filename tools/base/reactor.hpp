// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Drives loops (loop.hpp): a thread, or a test, that waits for descriptors, timers and posted
// tasks, and runs their handlers one after the other. Many loops may share one.
//
// Descriptors are level-triggered and registered once: a ready descriptor costs an epoll_wait and
// its handler. A post from the reactor's own thread costs no system call; a post from another
// thread costs one only if the reactor sleeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/environment.hpp"
#include "base/file_descriptor.hpp"
#include "base/task.hpp"

namespace weft
{

class Loop;

class Reactor
{
public:
	enum class Drive {
		thread, // a thread of its own, from construction to destruction
		manual, // runs in callers of turn(), all on one thread
	};

	// @name: the thread's name as tools show it (cut to 15 characters). @environment outlives
	// it.
	Reactor(const std::string &name, Drive drive,
		Environment &environment = Environment::host());
	// All its loops must have been destroyed.
	~Reactor();
	Reactor(const Reactor &) = delete;
	Reactor &operator=(const Reactor &) = delete;

	Environment &environment() const { return environment_; }
	// Returns true if the caller may run handlers, which means that it is on the reactor's
	// thread. Always true if driven manually.
	bool in_thread() const
	{
		return drive_ == Drive::manual || id_.load() == std::this_thread::get_id();
	}

	// Waits until something is ready, or @until, and runs the handlers; returns their number.
	// Must be called on the reactor's thread. A handler may call it to wait for the effect of
	// other handlers.
	std::size_t turn(Clock::time_point until);

private:
	friend class Loop;
	friend class Timer;
	friend class Watch;

	// A timer or watch, kept until no handler can be running that uses it.
	struct TimerState;
	struct WatchState;
	// The time, and the order of timers with the same time.
	using Due = std::pair<Clock::time_point, std::uint64_t>;
	struct Posted {
		Loop *loop;
		Task task;
	};

	void post(Loop &loop, Task task);
	// Destroys tasks that were posted to @loop and have not run.
	void forget(const Loop &loop);
	void control(int operation, int fd, std::uint32_t events, WatchState *state);
	void destroy_later(std::shared_ptr<void> state);
	template<typename Handler>
	void call(Loop &loop, Handler &&handler);
	std::size_t run_timers();
	void wake() const;

	const Drive drive_;
	Environment &environment_;
	const FileDescriptor poll_;
	const FileDescriptor wakeup_fd_; // an eventfd, watched by edge: it is never read

	// Reactor's thread only.
	std::map<Due, TimerState *> timers_;
	std::uint64_t armed_ = 0; // timers that were put among them
	std::deque<Posted> ready_;
	std::vector<std::shared_ptr<void>> to_destroy_;
	unsigned depth_ = 0; // of turn()

	Mutex mutex_;
	std::deque<Posted> posted_ WEFT_GUARDED_BY(mutex_);
	// The poster has to write to wakeup_fd_.
	bool asleep_ WEFT_GUARDED_BY(mutex_) = false;
	std::atomic<bool> stopping_{false};
	std::atomic<std::thread::id> id_{};

	std::thread thread_; // declared last, because it uses all other members
};

} // namespace weft
