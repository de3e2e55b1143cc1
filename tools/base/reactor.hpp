// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Drives loops (loop.hpp): a thread, or a test, waits for descriptors, timers and posted tasks, and
// runs their handlers one after the other. Several loops may share one reactor.
//
// Descriptors are level-triggered and registered once, so a ready descriptor costs an epoll_wait()
// and its handler. A post from the reactor's own thread costs no system call. A post from another
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

#include "base/busy_time.hpp"
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
		thread, // a thread, from construction to destruction
		manual, // runs in callers of turn(), which must all be on one thread
	};

	// @name is the thread's name as tools show it (cut to 15 characters). @environment must
	// outlive the reactor.
	Reactor(const std::string &name, Drive drive,
		Environment &environment = Environment::host());
	// All loops of the reactor must have been destroyed.
	~Reactor();
	Reactor(const Reactor &) = delete;
	Reactor &operator=(const Reactor &) = delete;

	Environment &environment() const { return environment_; }
	// Returns true if the caller may run handlers: if it is on the reactor's thread, or in
	// manual mode.
	bool in_thread() const
	{
		return drive_ == Drive::manual || id_.load() == std::this_thread::get_id();
	}

	// Returns the share of the recent time in which the thread ran handlers or waited for a CPU
	// to run them, from 0 to 1 (BusyTime). Always 0 in manual mode. May be called on any
	// thread.
	double load() const;

	// Waits until something is ready, at most until @until, and runs the handlers; returns
	// their number. Must be called on the reactor's thread. A handler may call it to wait for
	// the effect of other handlers.
	std::size_t turn(Clock::time_point until);

private:
	friend class Loop;
	friend class Timer;
	friend class Watch;

	// State of a timer or watch. It is kept until no handler that uses it can be running.
	struct TimerState;
	struct WatchState;
	// The deadline, and a number that orders timers with the same deadline.
	using Due = std::pair<Clock::time_point, std::uint64_t>;
	struct Posted {
		Loop *loop;
		Task task;
	};

	void post(Loop &loop, Task task);
	// Destroys the tasks that were posted to @loop and have not run.
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
	const FileDescriptor wakeup_fd_; // an eventfd, watched edge-triggered, so it is never read

	// Used only on the reactor's thread.
	std::map<Due, TimerState *> timers_;
	std::uint64_t armed_ = 0; // number of insertions into timers_
	std::deque<Posted> ready_;
	std::vector<std::shared_ptr<void>> to_destroy_;
	unsigned depth_ = 0; // nesting depth of turn()

	mutable Mutex mutex_;
	std::deque<Posted> posted_ WEFT_GUARDED_BY(mutex_);
	// True while the reactor sleeps: a thread that posts must then write to wakeup_fd_.
	bool asleep_ WEFT_GUARDED_BY(mutex_) = false;
	BusyTime busy_ WEFT_GUARDED_BY(mutex_); // only with a thread
	std::atomic<bool> stopping_{false};
	std::atomic<std::thread::id> id_{};

	std::thread thread_; // declared last, because it uses all other members
};

} // namespace weft
