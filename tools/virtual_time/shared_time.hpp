// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Virtual time that is shared with other processes: it stands still while any of them has work to
// do, and then jumps to the earliest deadline of any of them. The behaviour of a process that uses
// this clock therefore depends only on the requests of the others and their order.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/environment.hpp"

namespace weft::virtual_time
{

// SharedTime - the Environment of one reactor, which is driven by one thread. Local work goes
// before outside work that is due at the same time.
class SharedTime final : public Environment
{
public:
	// The programs outside. Called on the reactor's thread, with nothing left to do here.
	class Outside
	{
	public:
		// Returns whether an outside program runs at the present time and may send a
		// request, which makes a descriptor readable.
		virtual bool runs() const = 0;
		// Returns the time of the next time slice; the clock's maximum if there is none,
		// and nothing if it is not known yet: time does not advance then.
		virtual std::optional<Clock::time_point> due() const = 0;
		// Called when that time has come.
		virtual void run() = 0;
		// Environment::await_readable()
		virtual bool await_readable(int fd) = 0;

	protected:
		~Outside() = default;
	};

	// The date of its beginning.
	static constexpr std::chrono::seconds kDate{1700000000};

	explicit SharedTime(std::uint64_t seed) : chance_(seed) {}

	// The reactor's thread. Null for none.
	void set_outside(Outside *outside) { outside_ = outside; }

	Clock::time_point now() const override { return Clock::time_point(now_.load()); }
	std::chrono::system_clock::time_point date() const override;
	std::uint64_t random() override { return chance_.random(); }
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override;
	bool is_shared() const override { return true; }
	bool stands() const override { return outside_ && outside_->runs(); }
	bool await_readable(int fd) override { return outside_ && outside_->await_readable(fd); }

	// passed() is the virtual time since the start; at() converts such a duration to a point in
	// time.
	std::chrono::nanoseconds passed() const { return now_.load() - kBegin; }
	static Clock::time_point at(std::chrono::nanoseconds passed)
	{
		return Clock::time_point(kBegin + passed);
	}

private:
	// Not 0, so that "a while ago" is a time too.
	static constexpr Clock::duration kBegin = std::chrono::hours(1);

	void set(Clock::time_point time) { now_.store(std::max(now(), time).time_since_epoch()); }

	std::atomic<Clock::duration> now_{kBegin};
	VirtualEnvironment chance_;
	Outside *outside_ = nullptr;
};

} // namespace weft::virtual_time
