// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A machine's place on an Ethernet: a port, and a Unix socket for what QEMU calls `-netdev stream`. One machine at a time has it. On one
// loop, like its link.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/acceptor.hpp"
#include "base/loop.hpp"
#include "ethernet/link.hpp"

namespace spdlog
{
class logger;
}

namespace weft::ethernet
{

class Station
{
public:
	// Bytes that wait for a machine to read them. Frames that find no room are discarded, whole.
	static constexpr std::size_t kMostQueued = 512 << 10;

	// Throws std::system_error if @socket cannot be listened on.
	Station(Loop &loop, std::string name, const std::filesystem::path &socket);
	~Station();
	Station(const Station &) = delete;
	Station &operator=(const Station &) = delete;

	const std::filesystem::path &socket() const { return socket_; }
	Port &port() { return port_; }
	// Whether a machine has it.
	bool connected() const { return machine_ != nullptr; }

private:
	class Machine;

	void take(FileDescriptor connection);
	void end(const char *why);

	Loop &loop_;
	const std::filesystem::path socket_;
	const std::shared_ptr<spdlog::logger> log_;
	Port port_;
	std::unique_ptr<Machine> machine_;
	Acceptor acceptor_;
};

} // namespace weft::ethernet
