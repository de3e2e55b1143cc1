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
	std::chrono::nanoseconds at{0}; // since the start of the lab
	std::string request;            // in the format of the control socket
};

// Reads a file of events, one per line: {"at": SECONDS, "command": ...}. Throws std::runtime_error
// with the number of an invalid line.
std::vector<ScriptedEvent> load_events(const std::filesystem::path &file);

class ScriptedEvents
{
public:
	// A lab stops because an event requested it or because an event was refused.
	enum class End { Requested, Failed };
	using Ended = std::function<void(End end, const std::string &reason)>;

	// Starts at once, on @loop. An event that is refused stops the script; the reason contains
	// its request. @runtime and @loop outlive the object.
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
