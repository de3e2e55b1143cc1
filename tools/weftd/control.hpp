// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the control socket, through which programs command weftd: one JSON object per line in
// each direction, as weftd(1) documents it under "CONTROL SOCKET".
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop.hpp"

namespace weft::weftd
{

class FabricView;
class LogHistory;
class LabRuntime;
class Sampler;
class StateFile;

// Records the armed faults of the lab's cards, because they occur without a request.
void record_armed_faults(const LabRuntime &runtime, StateFile &state);

// Handles the requests and captures of one client. Does not use sockets.
class ControlSession
{
public:
	// @log contains the log lines that clients can read, or is null. @state records the
	// client's changes, or is null. @sampler is shared by the sessions of a server; if null,
	// the session has its own.
	ControlSession(LabRuntime &runtime, std::function<void()> shut_down,
		       std::shared_ptr<LogHistory> log = {}, std::shared_ptr<StateFile> state = {},
		       std::shared_ptr<Sampler> sampler = {});
	// Stops the captures that the client started.
	~ControlSession();

	// Handles one line, without its line feed. It never throws because of the contents of the
	// line.
	std::string handle(std::string_view line);
	// The same in steps, so that other clients can be served in between: begin() is followed by
	// calls of go_on() until it returns the answer.
	void begin(std::string_view line);
	std::optional<std::string> go_on();

private:
	struct Captures;

	LabRuntime &runtime_;
	std::function<void()> shut_down_;
	const std::shared_ptr<LogHistory> log_;
	const std::shared_ptr<StateFile> state_;
	const std::shared_ptr<Sampler> sampler_;
	std::unique_ptr<Captures> captures_;
	// The answer, or only its beginning if it has a view.
	std::string answer_;
	std::unique_ptr<FabricView> view_;
};

// Serves clients of the socket @path on @loop. Each client has a session.
class ControlServer
{
public:
	// Throws std::system_error as UnixListener does. Created and destroyed on any thread except
	// the loop's. @runtime and @loop must outlive the server.
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
