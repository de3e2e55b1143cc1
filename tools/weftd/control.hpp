// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The control socket: one JSON object per line in each direction, as weftd(1) documents it under
// "CONTROL SOCKET".
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop.hpp"

namespace weft::weftd
{

class LogHistory;
class LabRuntime;
class StateFile;

// Records the armed faults of the lab's cards: they happen meanwhile, without a request.
void record_armed_faults(const LabRuntime &runtime, StateFile &state);

// Handles the requests and captures of one client. Does not depend on sockets.
class ControlSession
{
public:
	// @log contains the log lines that clients can read; it may be null. @state records the
	// client's changes; it may be null.
	ControlSession(LabRuntime &runtime, std::function<void()> shut_down,
		       std::shared_ptr<LogHistory> log = {}, std::shared_ptr<StateFile> state = {});
	// Stops the captures that the client started.
	~ControlSession();

	// Handles one line, without its line feed. It never throws for the contents of the line.
	std::string handle(std::string_view line);

private:
	struct Captures;

	LabRuntime &runtime_;
	std::function<void()> shut_down_;
	const std::shared_ptr<LogHistory> log_;
	const std::shared_ptr<StateFile> state_;
	std::unique_ptr<Captures> captures_;
};

// Serves clients of the socket @path on @loop; each has a session of its own.
class ControlServer
{
public:
	// Throws std::system_error as UnixListener does. Created and destroyed on any thread except
	// the loop's; @runtime and @loop outlive it.
	ControlServer(Loop &loop, LabRuntime &runtime, const std::filesystem::path &path,
		      std::function<void()> shut_down, std::shared_ptr<LogHistory> log = {},
		      std::shared_ptr<StateFile> state = {});
	~ControlServer();

private:
	class Impl;
	Loop &loop_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::weftd
