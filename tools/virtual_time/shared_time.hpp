// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements virtual time that is shared with other processes. It does not advance while any of
// them has work to do, and then jumps to the earliest deadline of all processes. The behaviour of a
// process that uses this clock therefore depends only on the other processes' requests and their
// order.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/environment.hpp"

namespace weft::virtual_time
{

// SharedTime - the Environment of one reactor, which one thread drives. Local work is done before
// outside work that is due at the same time.
class SharedTime final : public Environment
{
public:
	// The programs outside this process. Called on the reactor's thread when this process has
	// no work left.
	class Outside
	{
	public:
		// Returns true if an outside program runs at the current time and may send a
		// request, which makes a descriptor readable.
		virtual bool runs() const = 0;
		// Returns the time of the next time slice, or the clock's maximum if there is none.
		// Returns nothing if it is not known yet; then time does not advance.
		virtual std::optional<Clock::time_point> due() const = 0;
		// Called when the time of the next time slice has been reached.
		virtual void run() = 0;
		// Environment::await_readable()
		virtual bool await_readable(int fd) = 0;

	protected:
		~Outside() = default;
	};

	// The rounds in which the places of a lab advance together (round_member.hpp). Packets from
	// other places arrive before local work that is due at the same time.
	class Round
	{
	public:
		// Returns the time that must not be reached in this round.
		virtual Clock::time_point limit() const = 0;
		// Returns the time of the next packet from another place, or the clock's maximum.
		virtual Clock::time_point first_arrival() const = 0;
		// Called when that time has been reached.
		virtual void deliver() = 0;
		// Called when nothing is left to do before the limit. @next is the time of the next
		// event, or the clock's maximum. Called again each time the clock has been woken.
		virtual void complete(Clock::time_point next) = 0;

	protected:
		~Round() = default;
	};

	// The date at which the virtual time begins.
	static constexpr std::chrono::seconds kDate{1700000000};

	explicit SharedTime(std::uint64_t seed) : chance_(seed) {}

	// Must be called on the reactor's thread. Null means that there are no outside programs.
	void set_outside(Outside *outside) { outside_ = outside; }
	// The same for rounds. Null means that time has no limit.
	void set_round(Round *round) { round_ = round; }

	Clock::time_point now() const override { return Clock::time_point(now_.load()); }
	std::chrono::system_clock::time_point date() const override;
	std::uint64_t random() override { return chance_.random(); }
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override;
	bool is_shared() const override { return true; }
	bool stands() const override { return outside_ && outside_->runs(); }
	bool await_readable(int fd) override { return outside_ && outside_->await_readable(fd); }

	// passed() returns the virtual time since the start. at() converts such a duration to a
	// point in time.
	std::chrono::nanoseconds passed() const { return now_.load() - kBegin; }
	static Clock::time_point at(std::chrono::nanoseconds passed)
	{
		return Clock::time_point(kBegin + passed);
	}

private:
	// Not 0, so that points of time before the start can be represented.
	static constexpr Clock::duration kBegin = std::chrono::hours(1);

	void set(Clock::time_point time) { now_.store(std::max(now(), time).time_since_epoch()); }

	std::atomic<Clock::duration> now_{kBegin};
	VirtualEnvironment chance_;
	Outside *outside_ = nullptr;
	Round *round_ = nullptr;
};

} // namespace weft::virtual_time
