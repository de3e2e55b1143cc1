// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// One thread, one event loop. Each card is driven by exactly one Loop, and so needs no lock inside:
// everything it does (protocol requests, doorbells, commands, packets, timers) runs inline on its
// loop. Other threads only post().
//
// A handler must not block and must not run long: a card works in bounded slices and posts itself
// again for the rest, because protocol requests of the same card wait behind it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/task.hpp"

namespace asio
{
class io_context;
}

namespace weft
{

using Clock = std::chrono::steady_clock;

class Loop
{
public:
	enum class Mode {
		Thread, // a thread of its own runs the loop from construction to destruction
		Manual, // the owner runs it with poll() and run_until(): for tests
	};

	// @name: the thread's name as tools show it (cut to 15 characters) and for logs.
	explicit Loop(std::string name, Mode mode = Mode::Thread);
	// Stops and joins. What was posted and has not run is destroyed without running. Never
	// called from the loop's own thread.
	~Loop();
	Loop(const Loop &) = delete;
	Loop &operator=(const Loop &) = delete;

	const std::string &name() const { return name_; }
	asio::io_context &io();

	// Contains what goes wrong on this loop: when a handler lets an exception escape, @failed runs
	// on the loop's thread with its text, and the loop goes on. What the loop drives may be in any
	// state then, and @failed ends it. Without one, or if it throws itself, the process ends. Called
	// on the loop.
	void contain(std::function<void(const std::string &what)> failed);

	// Runs @task later on the loop. Any thread; tasks of one poster run in order of posting.
	void post(Task task);
	// Runs @task on the loop and waits for its end; inline if called on the loop.
	// An exception of @task reaches the caller.
	void run(std::function<void()> task);
	// Whether the caller is on the loop's thread. In manual mode: always.
	bool in_loop() const;

	// Manual mode: runs what is ready and returns how many handlers ran.
	std::size_t poll();
	// Manual mode: runs handlers, waiting for events, until @done or @timeout; returns done().
	bool run_until(const std::function<bool()> &done,
		       Clock::duration timeout = std::chrono::seconds(5));

private:
	struct Impl;
	std::string name_;
	std::unique_ptr<Impl> impl_;
};

// Timer - a one-shot timer on a loop, cheap to move forward: arming an armed timer for a later
// time, and cancelling, cost no system call. Made, used and destroyed on the loop's thread.
class Timer
{
public:
	// @fired runs on the loop each time that an armed deadline passes; it may arm the timer
	// again.
	Timer(Loop &loop, std::function<void()> fired);
	~Timer();
	Timer(const Timer &) = delete;
	Timer &operator=(const Timer &) = delete;

	void arm(Clock::duration after) { arm_at(Clock::now() + after); }
	void arm_at(Clock::time_point deadline);
	void cancel();
	bool armed() const;

private:
	struct State;
	std::shared_ptr<State> state_;
};

// Wakeup - runs its handler on the loop soon after signal(), once for any number of signals in
// between: what an inbox does after it has enqueued. signal() from any thread; the Wakeup itself is
// made on any thread and destroyed on the loop's thread, after which no handler runs.
class Wakeup
{
public:
	Wakeup(Loop &loop, std::function<void()> handler);
	~Wakeup();
	Wakeup(const Wakeup &) = delete;
	Wakeup &operator=(const Wakeup &) = delete;

	// All that the caller did before signal() is visible to the handler run that follows.
	void signal();

private:
	struct State;
	std::shared_ptr<State> state_;
};

} // namespace weft
