// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// State of a reactor's timers and watches. Only reactor.cpp and loop.cpp use it.
#pragma once

#include <functional>
#include <optional>

#include "base/loop.hpp"

namespace weft
{

// The time it waits for in the reactor may be earlier than the deadline (it was set for a former
// one): it then wakes, sees that it is early, and waits again. So a retransmission timer that every
// ACK moves forward is put in order once an interval, not once a packet.
struct Reactor::TimerState {
	TimerState(Loop &l, std::function<void()> f) : loop(l), fired(std::move(f)) {}

	void wait()
	{
		Reactor &reactor = loop.reactor();
		waiting = {*deadline, reactor.armed_++};
		reactor.timers_.emplace(*waiting, this);
	}
	void stop_waiting()
	{
		if (waiting)
			loop.reactor().timers_.erase(*waiting);
		waiting.reset();
	}

	Loop &loop;
	const std::function<void()> fired;
	std::optional<Clock::time_point> deadline;
	std::optional<Due> waiting; // its key in the reactor's timers
};

struct Reactor::WatchState {
	WatchState(Loop &l, int f, std::function<void(unsigned)> r)
	    : loop(l), fd(f), ready(std::move(r))
	{
	}

	Loop &loop;
	const int fd;
	const std::function<void(unsigned)> ready;
	unsigned wanted = Watch::kNothing;
};

} // namespace weft
