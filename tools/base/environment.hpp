// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Access to the host, except its memory and sockets: time, waiting and random numbers. Everything
// below tools/ gets them from its loop (loop.hpp), which gets them from an Environment, so that a
// lab or a test can run in virtual time, which passes only when nothing is left to do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

struct epoll_event;

namespace weft
{

// Points in time and durations. There is no now() here, because the time is that of a loop.
struct Clock {
	using time_point = std::chrono::steady_clock::time_point;
	using duration = std::chrono::steady_clock::duration;
};

// Any thread may ask.
class Environment
{
public:
	virtual ~Environment() = default;

	virtual Clock::time_point now() const = 0;
	// Scheduler time, for what leaves the process.
	virtual std::chrono::system_clock::time_point date() const = 0;
	// Returns an unpredictable number, or a number that is derived from a seed.
	virtual std::uint64_t random() = 0;
	// Waits for events of the epoll instance @poll, but no longer than until @until (the
	// clock's minimum: not at all; its maximum: forever). Returns how many there are of @most
	// in @events, 0 if time has come.
	virtual int wait(int poll, epoll_event *events, int most, Clock::time_point until) = 0;

	// True if time is shared with programs outside of the process that run in time slices
	// (tools/virtual_time). All three functions are called on the reactor's thread. A caller
	// that notifies such a program waits for its answer before anything else is done.
	virtual bool is_shared() const { return false; }
	// True during the time slice of an outside program: meanwhile, only requests that arrive
	// over descriptors are handled.
	virtual bool stands() const { return false; }
	// Waits until @fd is readable, and meanwhile serves requests of outside programs; nothing
	// else runs. Returns false if it will never be.
	virtual bool await_readable(int fd) { return fd >= 0; }

	// Returns the environment of real time.
	static Environment &host();
};

// Time that does not advance while there is work, and then jumps to the next event.
// Everything in it is driven by one thread (Reactor::Drive::Manual).
class VirtualEnvironment final : public Environment
{
public:
	explicit VirtualEnvironment(std::uint64_t seed = 1) : random_(seed) {}

	Clock::time_point now() const override { return Clock::time_point(now_.load()); }
	std::chrono::system_clock::time_point date() const override;
	std::uint64_t random() override;
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override;

private:
	// Not 0, so that "a while ago" is a time too.
	std::atomic<Clock::duration> now_{std::chrono::hours(1)};
	std::atomic<std::uint64_t> random_;
};

} // namespace weft
