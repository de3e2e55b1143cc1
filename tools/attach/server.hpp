// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The server for attached programs: the nodes on which programs can run, and their connections
// (protocol.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "net/fabric/local_access.hpp"

namespace weft::attach
{

// Connections of all programs at a time: each opened port has one. More are turned away.
constexpr std::size_t kMostConnections = 1024;

class Server
{
public:
	// Listens at @path, if it is not empty. All of it runs on @loop, which outlives it. Throws
	// std::system_error as UnixListener does. Made and destroyed on any thread but the loop's.
	Server(Loop &loop, const std::filesystem::path &path);
	~Server();
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;

	// Any thread but the loop's; each waits for the loop.
	// @ports: from @first_number on, which is 0 for a switch, of which there is only that port;
	// they stay until remove_node().
	// @trusted: programs on the node may use QP0.
	void add_node(const std::string &name, std::vector<fabric::LocalAccess *> ports,
		      std::uint32_t first_number, bool trusted);
	// Ends what programs have opened on the node. None if there is no such node.
	void remove_node(const std::string &name);
	// Serves a connected socket of type SOCK_SEQPACKET, as if it had come to the listener.
	void serve(FileDescriptor socket);

private:
	class Impl;
	Loop &loop_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::attach
