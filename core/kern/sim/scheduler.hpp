// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the scheduler of the simulated kernel. One fiber runs at a time, and fibers behave as
 * if each had its own CPU. At each call of the kernel interface and at each atomic access, the
 * strategy of the run selects the fiber that continues. Time is virtual: a step takes 0.1
 * microseconds and, if no fiber can run, the clock jumps to the next deadline. So the strategy
 * determines a run completely, and a run can be repeated.
 */
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "fiber.hpp"
#include "strategy.hpp"

namespace sim
{

/* A part of a run in which one fiber ran without interruption. */
struct Stretch {
	unsigned int fiber;
	std::string name;
	Place from, to;
	std::uint64_t steps;
	std::uint64_t at;
};

class Scheduler
{
public:
	/*
	 * Runs `body` as a task, together with all fibers that it starts, until all have finished.
	 * Does not return after a failure: see fail(). @limit: the maximum number of steps.
	 */
	void run(Strategy &strategy, std::uint64_t limit, std::function<void()> body);

	/* Returns true if the caller is a fiber of a run. */
	bool inside() const { return running_ != nullptr; }
	Fiber &current() { return *running_; }
	std::uint64_t now() const { return now_; }
	std::uint64_t steps() const { return steps_; }
	/* The number of steps at which several fibers were runnable. */
	std::uint64_t choices() const { return choices_; }
	/* The number of random numbers that the run has used. The caller increments it. */
	std::uint64_t &draws() { return draws_; }
	Strategy &strategy() { return *strategy_; }

	/* Called before a function of the simulation is executed. Another fiber may run first. */
	void step(const Place &place);
	/* Like step(), but switches to another fiber if one is runnable. */
	void yield(const Place &place);
	/*
	 * Blocks the running fiber until wake() is called for the same address, or until the
	 * deadline. Returns false in the latter case.
	 */
	bool block(const volatile void *on, std::uint64_t deadline = never);
	void wake(const volatile void *on);
	void wake(Fiber &fiber);
	/* Starts a new fiber, which is runnable immediately. */
	Fiber &start(Kind kind, std::string name, std::function<void()> body);
	/*
	 * Calls `expired` at the given time, outside of any fiber. Returns the number for
	 * cancel_alarm().
	 */
	std::uint64_t set_alarm(std::uint64_t at, std::function<void()> expired);
	void cancel_alarm(std::uint64_t alarm);
	/* Lets an alarm expire immediately. */
	void ring_alarm(std::uint64_t alarm);
	/* Ends the running fiber. */
	[[noreturn]] void finish();

	std::vector<Fiber *> const &fibers() const { return live_; }
	/* Selects whether the stretches of a run are recorded. */
	void record_stretches(bool wanted) { recording_ = wanted; }
	const std::vector<Stretch> &stretches();

private:
	struct Alarm {
		std::uint64_t number;
		std::function<void()> expired;
	};

	std::uint64_t next_deadline() const;
	/* Makes all fibers and alarms that are due runnable. */
	void expire();
	void make_ready(Fiber &fiber);
	/*
	 * Selects the next fiber to run. If none is runnable, advances the time to the next
	 * deadline. Returns nullptr if all fibers have finished.
	 */
	Fiber *choose(Fiber *from, bool yields);
	void switch_to(Fiber &next);
	void end_stretch();
	[[noreturn]] void deadlock();

	std::vector<std::unique_ptr<Fiber>> all_;
	std::vector<Fiber *> idle_, live_, runnable_;
	std::multimap<std::uint64_t, Alarm> alarms_;
	Fiber *running_ = nullptr;
	Strategy *strategy_ = nullptr;
	std::uint64_t now_ = 0, steps_ = 0, choices_ = 0, limit_ = 0, readied_ = 0, alarms_set_ = 0,
		      draws_ = 0;
	// Number of steps since another fiber ran.
	std::uint64_t alone_ = 0;
	unsigned int started_ = 0;
	bool recording_ = false;
	std::vector<Stretch> stretches_;
	Place stretch_from_;
	std::uint64_t stretch_begin_ = 0;
};

Scheduler &scheduler();

/* Called when the running fiber enters or leaves a section for which grace periods wait. */
void enter_section(unsigned int Fiber::*counter);
void leave_section(unsigned int Fiber::*counter);
/* Address on which waiters for a grace period block. */
inline char grace_periods;

/*
 * Must be the first statement of each function of the simulation. Records the caller's position,
 * and lets other fibers run.
 */
#define SIM_STEP(object)                                                                           \
	do {                                                                                       \
		if (::sim::scheduler().inside())                                                   \
			::sim::scheduler().step({__func__, object, __builtin_return_address(0)});  \
	} while (0)

} // namespace sim
