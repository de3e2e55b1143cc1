// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Attaches a guest to an Ethernet segment. The attachment consists of a port on a link, and of the
// Unix socket to which QEMU's `-netdev stream` connects. The attachment serves one guest at a time
// and runs on the loop of its link.
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

class GuestAttachment final : public Attachment
{
public:
	// Limit of the bytes that wait for a guest that does not read. A frame that does not fit is
	// dropped as a whole.
	static constexpr std::size_t kMostQueued = 512 << 10;

	// Throws std::system_error if it cannot listen on @socket.
	GuestAttachment(Loop &loop, std::string name, const std::filesystem::path &socket);
	~GuestAttachment() override;
	GuestAttachment(const GuestAttachment &) = delete;
	GuestAttachment &operator=(const GuestAttachment &) = delete;

	std::filesystem::path socket() const override { return socket_; }
	Port &port() override { return port_; }
	bool connected() const override { return guest_ != nullptr; }

private:
	class Guest;

	void take(FileDescriptor connection);
	void end(const char *why);

	Loop &loop_;
	const std::filesystem::path socket_;
	const std::shared_ptr<spdlog::logger> log_;
	Port port_;
	std::unique_ptr<Guest> guest_;
	Acceptor acceptor_;
};

} // namespace weft::ethernet
