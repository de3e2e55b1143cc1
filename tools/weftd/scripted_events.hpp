// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Requests that are executed at scheduled times of a lab in virtual time. Requests of a client
// would arrive at different times in each run.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/loop.hpp"
#include "weftd/control.hpp"

namespace weft::weftd
{

class LabRuntime;

struct ScriptedEvent {
	std::chrono::nanoseconds at{0}; // since the beginning
	std::string request;            // as to the control socket
};

// Reads a file of events, one a line: {"at": SECONDS, "command": ...}. Throws std::runtime_error
// with the line that is none.
std::vector<ScriptedEvent> load_events(const std::filesystem::path &file);

class ScriptedEvents
{
public:
	// A lab stops because an event requested it or because an event was refused.
	enum class End { Requested, Failed };
	using Ended = std::function<void(End end, const std::string &reason)>;

	// Begins now, on @loop. The first event that is refused stops it; the reason names it.
	// @runtime and @loop outlive the object.
	ScriptedEvents(Loop &loop, LabRuntime &runtime, std::vector<ScriptedEvent> events,
		       Ended ended);

private:
	void perform(const ScriptedEvent &event);

	const Ended ended_;
	ControlSession session_;
	const std::vector<ScriptedEvent> events_;
	std::deque<Timer> timers_;
};

} // namespace weft::weftd
