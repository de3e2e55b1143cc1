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

// Requests and running captures of one client. Independent of sockets.
class ControlSession
{
public:
	// @log, which may be null, is what the client may read of the daemon's log. @state, which
	// may be null, records the client's changes.
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

// Serves clients of @path on @loop, each with a session of its own.
class ControlServer
{
public:
	// Throws std::system_error as UnixListener does. Made and destroyed on any thread but the
	// loop's; @world and @loop outlive it.
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
