// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes requests at scheduled times. Labs in virtual time need this, because requests of a
// client would arrive at different times in each run.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
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
	// Reason why a lab stops: an event has requested it, or an event was refused.
	enum class End { requested, failed };
	using Ended = std::function<void(End end, const std::string &reason)>;

	// The time of the events begins at the construction. @loop executes them; it must be the
	// thread that uses @runtime. The first event that is refused stops the script, and the
	// reason contains the event. @ended runs on @loop. The object is created and destroyed on
	// any thread. @runtime and @loop must outlive it.
	ScriptedEvents(Loop &loop, LabRuntime &runtime, std::vector<ScriptedEvent> events,
		       Ended ended);
	~ScriptedEvents();
	ScriptedEvents(const ScriptedEvents &) = delete;
	ScriptedEvents &operator=(const ScriptedEvents &) = delete;

private:
	void perform(const ScriptedEvent &event);

	Loop &loop_;
	const Ended ended_;
	const std::vector<ScriptedEvent> events_;
	// Used on the loop only.
	std::optional<ControlSession> session_;
	std::deque<Timer> timers_;
};

} // namespace weft::weftd
