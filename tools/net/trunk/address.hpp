// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses a numeric IP address with a TCP port, as lab files give it: "192.0.2.1:7470" or
// "[2001:db8::1]:7470".
#pragma once

#include <string>

#include <sys/socket.h>

#include "base/file_descriptor.hpp"

namespace weft::trunk
{

class Address
{
public:
	Address() = default;
	// Throws std::invalid_argument with the reason. Names are not resolved, because that can
	// block.
	static Address parse(const std::string &text);
	// Also accepts the name of a host: "HOST:PORT". Can block.
	static Address resolve(const std::string &text);
	// Return the local or remote address of a socket.
	static Address local(int socket);
	static Address peer(int socket);

	std::string text() const;
	// Returns the IP address without the port, as in "192.0.2.1" or "[2001:db8::1]".
	std::string host_text() const;
	// Returns the part of the address that identifies a client for limits: the IPv4 address, or
	// the first 64 bits of an IPv6 address, because a host can use all addresses with the same
	// first 64 bits.
	std::string network() const;
	// Returns false for port 0, with which a listener gets any free port.
	bool has_port() const { return port() != 0; }
	unsigned port() const;
	// Returns false for multicast and broadcast addresses, and for 0.0.0.0 and [::], which are
	// all addresses of the local host.
	bool is_of_one_host() const;
	// Returns the same IP address with another port.
	Address with_port(unsigned port) const;

	// Return non-blocking sockets and throw std::system_error. connect() does not wait for the
	// connection.
	FileDescriptor listen(int backlog) const;
	FileDescriptor connect() const;

private:
	// @flags is that of getaddrinfo(). Returns false if it does not find the address.
	static bool find(const std::string &text, int flags, Address &found);
	// @name_of is getsockname() or getpeername().
	static Address of(int socket, int (*name_of)(int, sockaddr *, socklen_t *));
	FileDescriptor make_socket() const;

	sockaddr_storage storage_{};
	socklen_t size_ = 0;
};

} // namespace weft::trunk
