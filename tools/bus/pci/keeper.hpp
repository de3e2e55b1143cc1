// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which another process can keep a client's connection open after this
// process has exited. The client (QEMU) must not see that its connection is closed, because it
// would not connect again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "bus/pci/message_reader.hpp"

namespace weft::pci
{

// A message that a client has sent to another process.
struct KeptMessage {
	std::vector<std::byte> bytes; // header first
	std::vector<FileDescriptor> fds;
};

// Keeper - receives notifications about the clients of all servers. A connection is identified by
// the name of its server and an ID. The server assigns the ID; for an adopted connection
// (Server::adopt()) the keeper provides it, or leaves it empty if it has none. IDs are unique, even
// across processes. The methods are called on the servers' loops.
class Keeper
{
public:
	virtual ~Keeper() = default;

	// A client has connected. @socket is the server's end of the connection, which the server
	// owns.
	virtual void connected(const std::string &name, const std::string &id, int socket) = 0;
	// The client has sent a message that sets up its session (Protocol::is_setup()). It needs
	// no ID, because a server has one client at a time.
	virtual void received(const std::string &name, const Message &message) = 0;
	// The client has disconnected, or its adoption was refused.
	virtual void gone(const std::string &name, const std::string &id) = 0;
};

} // namespace weft::pci
