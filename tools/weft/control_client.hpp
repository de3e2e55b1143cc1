// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The client end of weftd's control socket.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "base/file_descriptor.hpp"

namespace weft::cli
{

class ControlClient
{
public:
	// Connects to the weftd that serves @socket_directory. If there is none, throws
	// std::runtime_error with a remedy.
	explicit ControlClient(const std::filesystem::path &socket_directory);

	// Sends @command with @arguments and returns the result. If weftd refuses the request,
	// throws std::runtime_error with its reason.
	nlohmann::json call(const std::string &command,
			    nlohmann::json arguments = nlohmann::json::object());

	int fd() const { return socket_.get(); }

private:
	std::string read_line();

	FileDescriptor socket_;
	std::string received_;
};

} // namespace weft::cli
