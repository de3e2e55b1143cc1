// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What is needed to serve a client from another process if this one ends: a client that sees its
// connection close does not connect again.
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

// Keeper - is told of the clients of servers, by the servers' names. Called on the loops of the
// servers.
class Keeper
{
public:
	virtual ~Keeper() = default;

	// A client is connected by @socket, which is the server's.
	virtual void connected(const std::string &name, int socket) = 0;
	// The client has sent a message that sets up its session (Protocol::is_setup()).
	virtual void received(const std::string &name, const Message &message) = 0;
	// The client has gone.
	virtual void gone(const std::string &name) = 0;
};

} // namespace weft::pci
