// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the event loop of an object that lives on one thread. Each card has exactly one Loop,
// and therefore needs no lock: all its work (protocol requests, doorbells, commands, packets,
// timers) runs on its loop. Other threads only post(). A loop has its own thread, or shares one
// with other loops (reactor.hpp). Objects get the time and random numbers from their loop, and
// never directly from the host.
//
// A handler must not block and must not run long. A card works in bounded slices and posts the rest
// to its loop, because protocol requests of the same card wait meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/environment.hpp"
#include "base/reactor.hpp"
#include "base/task.hpp"

namespace weft
{

class Loop
{
public:
	enum class Mode {
		thread, // a thread that runs the loop from construction to destruction
		manual, // the owner runs the loop by poll() and run_until(): for tests
	};

	// Creates a reactor for this loop. @name is the thread's name, also used in logs.
	explicit Loop(std::string name, Mode mode = Mode::thread,
		      Environment &environment = Environment::host());
	// Shares @reactor, which must outlive the loop.
	Loop(std::string name, Reactor &reactor);
	// Destroys posted tasks that have not run, without running them. Timers and watches on the
	// loop must have been destroyed. Must not be called from a handler of the loop itself.
	~Loop();
	Loop(const Loop &) = delete;
	Loop &operator=(const Loop &) = delete;

	const std::string &name() const { return name_; }
	Reactor &reactor() const { return reactor_; }

	/* --- any thread --- */

	Clock::time_point now() const { return environment().now(); }
	std::uint64_t random() const { return environment().random(); }
	Environment &environment() const { return reactor_.environment(); }
	// Runs @task later on the loop. Tasks that one thread posts run in the order of posting.
	void post(Task task);
	// Runs @task on the loop, and returns when it has finished. Runs it at once if called on
	// the loop. An exception of @task is passed to the caller.
	void run(std::function<void()> task);
	// Returns true if the caller is on the loop's thread; always true in manual mode.
	bool in_loop() const { return reactor_.in_thread(); }

	// Handles exceptions on this loop: when a handler throws, @failed runs on the loop's thread
	// with the text of the exception, and the loop continues. The objects that the loop drives
	// may then be in any state, and @failed must destroy them. The process is terminated if
	// there is no @failed or if it throws. Must be called on the loop.
	void contain(std::function<void(const std::string &what)> failed);

	// Manual mode: runs the handlers that are ready, and returns their number.
	std::size_t poll();
	// Manual mode: runs handlers and waits for events until @done returns true or @timeout has
	// passed. Returns done().
	bool run_until(const std::function<bool()> &done,
		       Clock::duration timeout = std::chrono::seconds(5));

private:
	friend class Reactor;

	const std::string name_;
	std::function<void(const std::string &)> failed_;
	const std::unique_ptr<Reactor> own_; // null if it shares a reactor
	Reactor &reactor_;
};

// Timer - a one-shot timer on a loop. Postponing its deadline is cheap. Created, used and destroyed
// on the loop's thread.
class Timer
{
public:
	// @fired runs on the loop each time an armed deadline has passed. It may arm the timer
	// again.
	Timer(Loop &loop, std::function<void()> fired);
	~Timer();
	Timer(const Timer &) = delete;
	Timer &operator=(const Timer &) = delete;

	// A deadline beyond the clock's range is never reached.
	void arm(Clock::duration after);
	void arm_at(Clock::time_point deadline);
	void cancel();
	bool armed() const;

private:
	std::shared_ptr<Reactor::TimerState> state_;
};

// Watch - calls its handler as long as a descriptor is ready. It is created, used and destroyed on
// the loop's thread, and destroyed before the descriptor is closed.
class Watch
{
public:
	// kClosed: the peer has closed its end, or the file has an error. Unread data may remain.
	enum Ready : unsigned { kNothing = 0, kReadable = 1, kWritable = 2, kClosed = 4 };

	// @ready runs on the loop with those of the requested events for which @fd is ready. In the
	// state of kClosed, it gets all requested events. Throws std::system_error if the file
	// cannot be polled.
	Watch(Loop &loop, int fd, Ready wanted, std::function<void(unsigned ready)> ready);
	~Watch();
	Watch(const Watch &) = delete;
	Watch &operator=(const Watch &) = delete;

	void want(unsigned wanted);

private:
	std::shared_ptr<Reactor::WatchState> state_;
};

// Wakeup - runs its handler on the loop soon after signal(), once for any number of signals in
// between. For example, a queue signals its consumer after it has enqueued an item. Any thread may
// create it or call signal(). It is destroyed on the loop's thread, after which no handler runs.
class Wakeup
{
public:
	Wakeup(Loop &loop, std::function<void()> handler);
	~Wakeup();
	Wakeup(const Wakeup &) = delete;
	Wakeup &operator=(const Wakeup &) = delete;

	// Everything that the caller did before signal() is visible to the next run of the handler.
	void signal();

private:
	struct State;
	std::shared_ptr<State> state_;
};

} // namespace weft
