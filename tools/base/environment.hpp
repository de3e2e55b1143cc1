// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface for the things that would differ in each run: the time, waiting for events,
// and random numbers. All code in tools/ gets them from its event loop (loop.hpp), which gets them
// from an Environment. A lab or a test can therefore run in virtual time, which advances only when
// there is no work left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

struct epoll_event;

namespace weft
{

// The clock's types. There is no now(), because each loop has its own time.
struct Clock {
	using time_point = std::chrono::steady_clock::time_point;
	using duration = std::chrono::steady_clock::duration;
};

// Thread-safe.
class Environment
{
public:
	virtual ~Environment() = default;

	virtual Clock::time_point now() const = 0;
	// Returns the wall-clock time, for data that leaves the process.
	virtual std::chrono::system_clock::time_point date() const = 0;
	// Returns an unpredictable number, or a number that is derived from a seed.
	virtual std::uint64_t random() = 0;
	// Waits for events of the epoll instance @poll, at most until @until. The clock's minimum
	// means without waiting, and its maximum without a limit. Stores up to @most events in
	// @events and returns their number, or 0 after the time limit.
	virtual int wait(int poll, epoll_event *events, int most, Clock::time_point until) = 0;

	// Returns true if time is shared with programs outside the process that run in time slices
	// (tools/virtual_time). All three functions are called on the reactor's thread. A caller
	// that notifies such a program waits for the program's answer before it does anything else.
	virtual bool is_shared() const { return false; }
	// Returns true during the time slice of an outside program. Meanwhile, only requests that
	// arrive over descriptors are handled.
	virtual bool stands() const { return false; }
	// Waits until @fd is readable, and meanwhile serves only requests of outside programs.
	// Returns false if @fd will never be readable.
	virtual bool await_readable(int fd) { return fd >= 0; }

	// Returns the environment of real time.
	static Environment &host();
};

// Time that advances only when there is no work left, and then jumps to the next event. One thread
// drives everything that uses it (Reactor::Drive::manual).
class VirtualEnvironment final : public Environment
{
public:
	explicit VirtualEnvironment(std::uint64_t seed = 1) : random_(seed) {}

	Clock::time_point now() const override { return Clock::time_point(now_.load()); }
	std::chrono::system_clock::time_point date() const override;
	std::uint64_t random() override;
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override;

private:
	// Not 0, so that points of time in the past can be represented.
	std::atomic<Clock::duration> now_{std::chrono::hours(1)};
	std::atomic<std::uint64_t> random_;
};

} // namespace weft
