// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state of a reactor's timers and watches. Only reactor.cpp and loop.cpp use it.
#pragma once

#include <functional>
#include <optional>

#include "base/loop.hpp"

namespace weft
{

// A timer that is postponed keeps its earlier entry in the reactor's timers. When that entry
// expires, the timer is entered again with the new deadline. A retransmission timer that every ACK
// postpones is therefore sorted once per interval and not once per packet.
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
