// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A trunk: a link of the fabric whose other end is in another weftd, which is reached over TCP.
//
// One end listens, the other connects and tries again for as long as there is no connection. A
// connection that authenticates itself replaces an older one: its counterpart knows better if that
// has been lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/loop.hpp"
#include "net/fabric/port.hpp"
#include "net/trunk/address.hpp"
#include "net/trunk/key.hpp"

namespace weft::trunk
{

// Connections in the handshake; one more ends the oldest.
constexpr std::size_t kMostHandshakes = 4;
// Connections that are accepted in a second. More wait in the listener's queue of kBacklog.
constexpr unsigned kHandshakesPerSecond = 10;
constexpr int kBacklog = 16;
// Pause between two attempts to connect: doubled from the first to the second.
constexpr std::chrono::milliseconds kFirstRetry{250};
constexpr std::chrono::milliseconds kLastRetry{4000};

struct Config {
	std::string name; // the same at both ends
	Role role = Role::connects;
	Address address; // to connect to, or to listen at
};

// For people and tests.
struct State {
	bool connected = false;
	std::string address;           // that it listens at or connects to
	std::string peer;              // of the connection
	std::string last_reason;       // why there is no connection, or why the last one ended
	std::uint64_t connections = 0; // that have been authenticated
	std::uint64_t refused = 0;     // connections that were not
	std::uint64_t violations = 0;  // connections that ended because the peer broke the protocol
};

class Trunk
{
public:
	// Stands for the remote port at @port. All of it runs on @loop, which outlives it, as does
	// @port. Throws std::system_error if it cannot listen. Made and destroyed on any thread but
	// the loop's.
	Trunk(Loop &loop, fabric::Port &port, Config config, Key key);
	~Trunk();
	Trunk(const Trunk &) = delete;
	Trunk &operator=(const Trunk &) = delete;

	// Any thread.
	State state() const;
	Role role() const { return role_; }

private:
	class Impl;
	Loop &loop_;
	const Role role_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::trunk
