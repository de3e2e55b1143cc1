// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface that a protocol (vfio-user or vhost-user) implements to connect PCI
// functions to guests. The code of a server that does not depend on the protocol is in server.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bus/pci/device.hpp"
#include "bus/pci/interrupts.hpp"
#include "bus/pci/message_reader.hpp"

namespace spdlog
{
class logger;
}

namespace weft::pci
{

class Endpoint;

// Session - the session of one client: handles messages, operates the endpoint, and creates
// replies. It uses no socket.
class Session
{
public:
	virtual ~Session() = default;

	// Handles @message. Returns the whole reply, header first, or nothing if there is none. It
	// is valid until the next call.
	virtual std::span<const std::byte> handle(Message &message) = 0;
	// The descriptor that the last reply carries, which stays its owner's; negative: none.
	virtual int reply_descriptor() const { return -1; }
	// Returns true if the client cannot be served (see end_reason()), so that the connection
	// must be closed.
	bool ended() const { return !end_reason_.empty(); }
	const std::string &end_reason() const { return end_reason_; }

protected:
	void end(std::string reason) { end_reason_ = std::move(reason); }

private:
	std::string end_reason_;
};

// Protocol - belongs to one endpoint, which it outlives.
class Protocol
{
public:
	virtual ~Protocol() = default;

	virtual const Framing &framing() const = 0;
	virtual Interrupts &interrupts() = 0;
	// Returns true if the session of a client depends on a message of this kind even after the
	// device is reset.
	virtual bool is_setup(const Message &) const { return false; }
	// Begins the session of a new client; there is one client at a time.
	virtual std::unique_ptr<Session> begin(Endpoint &endpoint,
					       std::shared_ptr<spdlog::logger> log) = 0;
};

// Creates the protocol of a device with this description. Called on its loop.
using MakeProtocol =
	std::function<std::unique_ptr<Protocol>(Loop &loop, const PciDescription &description)>;

} // namespace weft::pci
