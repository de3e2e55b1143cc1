// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements IPv4 and TCP over Ethernet for one host: its addresses, its neighbours and its
// connections. Each card has one stack, on the card's loop. The stack has no thread, clock or
// socket of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/loop.hpp"
#include "net/tcp/connection.hpp"
#include "net/tcp/neighbours.hpp"
#include "net/tcp/wire.hpp"

namespace weft::tcp
{

using ConnectionPtr = std::shared_ptr<Connection>;

class Stack
{
public:
	static constexpr std::size_t kMostAddresses = 16;
	// Limits of connections in all states, and of half-open connections of listeners. At the
	// latter limit, a new half-open connection replaces an existing one. Connections with an
	// address that no host has announced are replaced first. Among them, the oldest connection
	// of the address with the most connections is replaced.
	static constexpr std::size_t kMostConnections = 4096;
	static constexpr std::size_t kMostUnfinished = 128;
	static constexpr std::size_t kMostListeners = 1024;
	// Limit of the bytes that all connections buffer in each direction, which they share
	// equally.
	static constexpr std::size_t kMostHeld = 64 << 20;
	// Limit of queued frames to the host's own addresses. Frames beyond it are dropped.
	static constexpr std::size_t kMostOwn = 256;

	struct Config {
		Mac mac;
		std::size_t mtu = 1500;
	};

	// @send sends a frame on the cable.
	Stack(Loop &loop, const Config &config, std::function<void(Bytes frame)> send);
	// Ends all connections without notifying their users. A peer that still sends gets a reset
	// from the next stack with this address.
	~Stack();
	Stack(const Stack &) = delete;
	Stack &operator=(const Stack &) = delete;

	// Returns false if there are too many addresses.
	bool add_address(Ip address, Ip mask);
	// Ends the connections of the address with End::unreachable.
	void remove_address(Ip address);
	bool owns(Ip address) const;

	// @accept is called with each established connection to @local (any address if it is 0),
	// and must set its user. Returns false if the endpoint is in use, or there are too many
	// listeners.
	bool listen(const Endpoint &local, std::function<void(const ConnectionPtr &)> accept);
	// Stops listening, and drops the listener's half-open connections.
	void stop_listening(const Endpoint &local);
	// Connects from an unused local port. Returns null if there is no route to @remote or no
	// free connection.
	ConnectionPtr connect(const Endpoint &remote, User &user);

	// Handles a frame from the cable.
	void receive(View frame);

	std::size_t connections() const { return connections_.size(); }

private:
	struct Address {
		Ip address, mask;
	};
	struct Listener {
		std::function<void(const ConnectionPtr &)> accept;
	};

	// Returns the host's own address on the network of @destination. Returns nothing if there
	// is none. The destination is then unreachable, because the stack uses no routers.
	std::optional<Ip> source_towards(Ip destination) const;
	bool is_host(Ip address) const;
	std::uint16_t unused_port(Ip local, const Endpoint &remote);

	void take_arp(const Arp &arp);
	void take_echo(const Packet &packet);
	void take_segment(const Packet &packet);
	void open_passively(const Pair &pair, const Segment &syn);
	void make_room_for_unfinished();
	Listener *listener_of(const Endpoint &local);
	void refuse(const Pair &pair, const Segment &segment);
	bool may_add_connection();
	void send_segment(const Pair &pair, const Segment &segment, Neighbours::For what);
	void send_packet(const Packet &packet, Neighbours::For what);
	Connection::Setup setup_for(const Pair &pair);
	void destroy_later(const Pair &pair);
	void unreachable(Ip neighbour);
	void receive_own();

	Loop &loop_;
	const Config config_;
	const std::function<void(Bytes)> send_;
	Neighbours neighbours_;
	std::vector<Address> addresses_;
	std::map<Endpoint, Listener> listeners_;
	std::map<Pair, ConnectionPtr> connections_;
	// Half-open connections, oldest first.
	std::deque<Pair> unfinished_;
	// Connections that have ended, and may still be executing one of their functions.
	std::vector<ConnectionPtr> to_destroy_;
	Wakeup destruction_;
	std::deque<Bytes> own_;
	Wakeup own_wakeup_;
};

} // namespace weft::tcp
