// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the client end of weftd's control socket.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "base/file_descriptor.hpp"

namespace weft::cli
{

// Returns the directory of the control socket for @socket_directory: the directory itself, or, if
// it is the default one and no lab is there, that of the lab of which a place runs on this host.
// Throws std::runtime_error if there are several.
std::filesystem::path find_lab(const std::filesystem::path &socket_directory);

class ControlClient
{
public:
	// Connects to the weftd that serves @socket_directory. If there is none, throws
	// std::runtime_error with a remedy. See find_lab().
	explicit ControlClient(const std::filesystem::path &socket_directory);

	// Sends @command with @arguments and returns the result. If weftd refuses the request,
	// throws std::runtime_error with its reason. Reports places of the lab that have not
	// answered to standard error, unless the result itself contains them.
	nlohmann::json call(const std::string &command,
			    nlohmann::json arguments = nlohmann::json::object());

	int fd() const { return socket_.get(); }

private:
	std::string read_line();

	FileDescriptor socket_;
	std::string received_;
};

} // namespace weft::cli
