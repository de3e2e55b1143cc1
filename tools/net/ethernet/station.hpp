// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A machine's place on an Ethernet: a port, and a Unix socket for what QEMU calls `-netdev stream`.
// One machine at a time has it. On one loop, like its link.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/acceptor.hpp"
#include "base/loop.hpp"
#include "net/ethernet/attachment.hpp"
#include "net/ethernet/link.hpp"

namespace spdlog
{
class logger;
}

namespace weft::ethernet
{

class Station final : public Attachment
{
public:
	// Bytes that wait for a machine to read them. Frames that find no room are discarded,
	// whole.
	static constexpr std::size_t kMostQueued = 512 << 10;

	// Throws std::system_error if @socket cannot be listened on.
	Station(Loop &loop, std::string name, const std::filesystem::path &socket);
	~Station() override;
	Station(const Station &) = delete;
	Station &operator=(const Station &) = delete;

	std::filesystem::path socket() const override { return socket_; }
	Port &port() override { return port_; }
	bool connected() const override { return machine_ != nullptr; }

private:
	class Guest;

	void take(FileDescriptor connection);
	void end(const char *why);

	Loop &loop_;
	const std::filesystem::path socket_;
	const std::shared_ptr<spdlog::logger> log_;
	Port port_;
	std::unique_ptr<Guest> machine_;
	Acceptor acceptor_;
};

} // namespace weft::ethernet
