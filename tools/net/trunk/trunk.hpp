// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a trunk: a link of the fabric whose other end is in another weftd, which is reached
// over TCP, or a connection between the parts of an Ethernet segment in two weftds.
//
// One end listens. The other end connects, and retries as long as there is no connection. If a new
// authenticated connection arrives while another one exists, it replaces the old one only if the
// old one has been silent for kReplaceTime. Otherwise the new one is refused, because it comes from
// a second daemon with the same trunk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/loop.hpp"
#include "net/ethernet/channel.hpp"
#include "net/fabric/port.hpp"
#include "net/trunk/address.hpp"
#include "net/trunk/key.hpp"

namespace weft::trunk
{

// Limit of the connections in the handshake. Beyond it, the oldest one of the network that has the
// most is closed.
constexpr std::size_t kMostHandshakes = 32;
// Limit of connections that wait in the kernel to be accepted.
constexpr int kBacklog = 256;
// Delay before another attempt to connect. It doubles from the first value to the last.
constexpr std::chrono::milliseconds kFirstRetry{250};
constexpr std::chrono::milliseconds kLastRetry{4000};
// Silence after which a connection may be replaced. A peer sends something every kAlivePeriod.
constexpr std::chrono::seconds kReplaceTime{3};

struct Config {
	std::string name; // must be the same at both ends
	Role role = Role::connects;
	Address address; // the address to connect to, or to listen at
};

// For users and tests.
struct State {
	bool connected = false;
	std::string address; // own address or the address of the listener
	std::string peer;    // the peer of the connection
	// reason why there is no connection, or why the last one was closed
	std::string last_reason;
	std::string last_refusal; // address of the last refused client, and the reason
	// number of connections that were accepted after authentication
	std::uint64_t connections = 0;
	std::uint64_t refused = 0; // number of refused connections
	// number of connections closed because the peer broke the protocol
	std::uint64_t violations = 0;
};

class Trunk
{
public:
	// @port represents the remote port. The trunk runs on @loop; @loop and @port must outlive
	// it. Throws std::system_error if it cannot listen. Created and destroyed on any thread
	// except the loop's.
	Trunk(Loop &loop, fabric::Port &port, Config config, Key key);
	// The same for an Ethernet segment: the trunk has the card's side of @channel.
	Trunk(Loop &loop, std::shared_ptr<ethernet::Channel> channel, Config config, Key key);
	~Trunk();
	Trunk(const Trunk &) = delete;
	Trunk &operator=(const Trunk &) = delete;

	// Thread-safe.
	State state() const;
	Role role() const { return role_; }

private:
	class Impl;
	Loop &loop_;
	const Role role_;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::trunk
