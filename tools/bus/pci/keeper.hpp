// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The interface by which another process can take over a client when this process exits. The client
// must not see its connection close, because it would not connect again.
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

// Keeper - is notified of the clients of all servers. A client is identified by the name of its
// server. The functions are called on the servers' loops.
class Keeper
{
public:
	virtual ~Keeper() = default;

	// A client has connected. @socket is the server's end of the connection.
	virtual void connected(const std::string &name, int socket) = 0;
	// The client has sent a message that sets up its session (Protocol::is_setup()).
	virtual void received(const std::string &name, const Message &message) = 0;
	// The client has disconnected.
	virtual void gone(const std::string &name) = 0;
};

} // namespace weft::pci
