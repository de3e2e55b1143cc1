// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the server of `weft attach` in weftd. It knows the nodes to which programs can be
// attached, and serves the programs' connections (protocol.hpp).
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

// Limit of the connections of all programs. Each opened port has one. Connections beyond it are
// closed.
constexpr std::size_t kMostConnections = 1024;

class Server
{
public:
	// Listens at @path, if it is not empty. Everything runs on @loop, which must outlive the
	// server. Throws std::system_error as UnixListener does. Created and destroyed on any
	// thread except the loop's.
	Server(Loop &loop, const std::filesystem::path &path);
	~Server();
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;

	// These are called on any thread except the loop's, and wait for the loop. @ports are
	// numbered from @first_number on; a switch has only port 0. They must exist until
	// remove_node(). @trusted: programs on the node may use QP0.
	void add_node(const std::string &name, std::vector<fabric::LocalAccess *> ports,
		      std::uint32_t first_number, bool trusted);
	// Closes all connections to the node. Has no effect if there is no such node.
	void remove_node(const std::string &name);
	// Serves a connected socket of type SOCK_SEQPACKET like one that the listener has accepted.
	void serve(FileDescriptor socket);

private:
	class Impl;
	Loop &loop_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::attach
