// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// IPv4 and TCP over Ethernet for one host: its addresses, its neighbours, its connections. Each
// card has one, on the card's loop; it has no thread, clock or socket of its own.
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
	// Limits of connections in all states, and of those that a listener's callers have not
	// finished. Newer ones replace the latter: first those of addresses that no host has
	// announced, and of these, the oldest of the address that has the most of them.
	static constexpr std::size_t kMostConnections = 4096;
	static constexpr std::size_t kMostUnfinished = 128;
	static constexpr std::size_t kMostListeners = 1024;
	// Bytes that all connections hold in a direction, shared out among those that there are.
	static constexpr std::size_t kMostHeld = 64 << 20;
	// The number of frames to the own address that wait for the loop. More are lost.
	static constexpr std::size_t kMostOwn = 256;

	struct Config {
		Mac mac;
		std::size_t mtu = 1500;
	};

	// @send: puts a frame on the cable.
	Stack(Loop &loop, const Config &config, std::function<void(Bytes frame)> send);
	// All connections end without notifying their users. Peers are reset when they send to the
	// next stack with this address.
	~Stack();
	Stack(const Stack &) = delete;
	Stack &operator=(const Stack &) = delete;

	// False: there are enough.
	bool add_address(Ip address, Ip mask);
	// Connections of it end: End::Unreachable.
	void remove_address(Ip address);
	bool owns(Ip address) const;

	// @accept: gets each connection of somebody's to @local (address 0: to any), established,
	// whose user it sets. False: the place is taken, or there are enough.
	bool listen(const Endpoint &local, std::function<void(const ConnectionPtr &)> accept);
	// Its connections that are not established end.
	void stop_listening(const Endpoint &local);
	// The local port is an unused one. Returns null if no own address has a route there, or if
	// there is no space.
	ConnectionPtr connect(const Endpoint &remote, User &user);

	// A frame of the cable.
	void receive(View frame);

	std::size_t connections() const { return connections_.size(); }

private:
	struct Address {
		Ip address, mask;
	};
	struct Listener {
		std::function<void(const ConnectionPtr &)> accept;
	};

	// The own address on the network that @destination is on; nothing: it is on none, and there
	// is no way to it.
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
	bool has_room_for_connection();
	void send_segment(const Pair &pair, const Segment &segment, Neighbours::For what);
	void send_packet(const Packet &packet, Neighbours::For what);
	Connection::Setup setup_for(const Pair &pair);
	void bury(const Pair &pair);
	void unreachable(Ip neighbour);
	void receive_own();

	Loop &loop_;
	const Config config_;
	const std::function<void(Bytes)> send_;
	Neighbours neighbours_;
	std::vector<Address> addresses_;
	std::map<Endpoint, Listener> listeners_;
	std::map<Pair, ConnectionPtr> connections_;
	// Not established yet, the oldest first.
	std::deque<Pair> unfinished_;
	// Over, and perhaps in one of their functions still.
	std::vector<ConnectionPtr> buried_;
	Wakeup burial_;
	std::deque<Bytes> own_;
	Wakeup own_wakeup_;
};

} // namespace weft::tcp
