// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Serves one device on one Unix socket. The server runs on the event loop of the device, so a
// register access is handled without a change of thread. The server has one client at a time; after
// a client has left, the next one may connect.
//
// The server never waits for a client: reads and writes do not block, and unread replies are
// queued. A client that exceeds the limit of the queue, or truncates the memory that it has shared
// (memory_mapping.hpp), is disconnected.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file_descriptor.hpp"
#include "bus/pci/keeper.hpp"
#include "bus/pci/protocol.hpp"

namespace weft::pci
{

class Server
{
public:
	// Plugs @device in with the name @name (for the log), for clients with the protocol that
	// @make_protocol creates. A guest may have @most_mappings DMA mappings. A server
	// may be created and destroyed on any thread except the loop's own; @loop and @device must
	// outlive it.
	Server(Loop &loop, PciDevice &device, const std::string &name, MakeProtocol make_protocol,
	       std::size_t most_mappings);
	~Server();
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;

	// Listens at @path, where only the same user may connect. A stale socket file is replaced.
	// Throws std::system_error; EADDRINUSE if another process serves it. The file is removed
	// with the server.
	void listen(const std::filesystem::path &path);
	// Serves a client over a connected socket.
	void serve(FileDescriptor socket);
	// Notifies @keeper, which outlives the server, of all clients from now on.
	void keep(Keeper &keeper);
	// Continues to serve a client of another process. @setup: the messages that have set up its
	// session. The client finds the device in the state after power-on. @id: the keeper's ID of
	// the connection, see pci::Keeper; the keeper is notified with it if the client is refused.
	void adopt(FileDescriptor socket, std::vector<KeptMessage> setup, std::string id);
	// Returns true if a client is connected. Callable from any thread; never blocks.
	bool connected() const;

private:
	class Impl;
	Loop &loop_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::pci
